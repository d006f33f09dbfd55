import { Anchor } from "@mantine/core";
import { Link } from "react-router";

import { pathIn } from "../api/zone";
import { Empty } from "../parts/Empty";

/** What is pending or delivered is listed for one endpoint; which one, nobody chooses but the operator. */
export function ChooseEndpoint({ zone }: { zone: string }) {
  return (
    <Empty
      title="Choose an endpoint"
      about="Its deliveries are listed here, the newest first. Those that ended without delivery are listed for all endpoints together."
    >
      <Anchor component={Link} to={`${pathIn(zone, "deliveries")}?state=dead_lettered`} size="sm">
        Dead-lettered deliveries of all endpoints
      </Anchor>
    </Empty>
  );
}
