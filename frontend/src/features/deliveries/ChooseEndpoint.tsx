import { Anchor } from "@mantine/core";
import { Link } from "react-router";

import { pathIn } from "../../api/zone";
import { Empty } from "../../parts/Empty";

/** Pending and delivered deliveries are listed for one endpoint, which the operator chooses. */
export function ChooseEndpoint({ zone }: { zone: string }) {
  return (
    <Empty
      title="Choose an endpoint or a stream"
      about="Their deliveries are listed here, newest first. Deliveries that ended without success can be listed for all endpoints together."
    >
      <Anchor component={Link} to={pathIn(zone, "dead-letters")} size="sm">
        Dead letters of all endpoints, by cause
      </Anchor>
    </Empty>
  );
}
