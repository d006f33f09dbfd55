import { Anchor } from "@mantine/core";
import { Link } from "react-router";

import { pathIn } from "../api/zone";
import { Empty } from "../parts/Empty";

export function NoEndpoint({ zone }: { zone: string }) {
  return (
    <Empty
      title="Nothing is owed to anybody"
      about="Once a registration names a callback, every event that it matches is a delivery to that endpoint. By a key of the client:"
      command={`curl ${location.origin}/v1/registrations -H "Authorization: Bearer $KEY" \\
     --json '{"streams": ["orders"], "callback": "https://example.org/hook"}'`}
    >
      <Anchor component={Link} to={pathIn(zone, "registrations")} size="sm">
        To the registrations
      </Anchor>
    </Empty>
  );
}
