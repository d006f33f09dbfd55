import { Anchor } from "@mantine/core";
import { Link } from "react-router";

import { pathIn } from "../../api/zone";
import { Empty } from "../../parts/Empty";

export function NoEndpoint({ zone }: { zone: string }) {
  return (
    <Empty
      title="No endpoints"
      about="Create a registration with a callback: every event that it matches becomes a delivery to that endpoint. With a key of the client:"
      command={`curl ${location.origin}/v1/registrations -H "Authorization: Bearer $KEY" \\
     --json '{"streams": ["orders"], "callback": "https://example.org/hook"}'`}
    >
      <Anchor component={Link} to={pathIn(zone, "registrations")} size="sm">
        To the registrations
      </Anchor>
    </Empty>
  );
}
