import { Anchor } from "@mantine/core";
import { Link } from "react-router";

import { pathIn } from "../../api/zone";
import { Empty } from "../../parts/Empty";

/** Pending and delivered deliveries are listed for one endpoint, which the operator chooses. */
export function ChooseEndpoint({ zone }: { zone: string }) {
  return (
    <Empty
      title="Choose an endpoint"
      about="Its deliveries are listed here, newest first. Deliveries that ended without success can be listed for all endpoints together."
    >
      <Anchor component={Link} to={`${pathIn(zone, "deliveries")}?state=dead_lettered`} size="sm">
        Dead-lettered deliveries of all endpoints
      </Anchor>
    </Empty>
  );
}
