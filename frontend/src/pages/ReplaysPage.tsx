import { Button } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { Link } from "react-router";

import { type Faults, isFaulty, numberAt, useAddress } from "../api/address";
import { pathIn, useZone } from "../api/zone";
import { FaultAlert } from "../parts/FaultAlert";
import { May } from "../parts/May";
import { PageHeader } from "../parts/PageHeader";
import { ReplayFilters } from "../features/replays/ReplayFilters";
import { ReplayList } from "../features/replays/ReplayList";
import { type ReplayFilter, STATES } from "../features/replays/replays";

/** The replay runs of the zone. */
export function ReplaysPage() {
  const zone = useZone();
  const [search, setSearch] = useAddress();
  const faults: Faults = {};
  const filter = filterOf(search, faults);
  return (
    <>
      <PageHeader title="Replays" about="Runs that send events of the log, or failed deliveries, to an endpoint again.">
        <May>
          <Button component={Link} to={`${pathIn(zone, "replays/new")}${filter.endpoint === undefined ? "" : `?endpoint=${filter.endpoint}`}`} leftSection={<IconPlus size={16} />}>
            New replay
          </Button>
        </May>
      </PageHeader>
      <ReplayFilters zone={zone} filter={filter} faults={faults} onChange={(part) => setSearch((latest) => searchOf({ ...filterOf(latest, {}), ...part }))} />
      {isFaulty(faults) ? <FaultAlert faults={faults} search={search} /> : <ReplayList zone={zone} filter={filter} />}
    </>
  );
}

function filterOf(search: URLSearchParams, faults: Faults): ReplayFilter {
  const text = search.get("state") ?? "";
  const state = STATES.find((one) => one === text);
  if (text !== "" && state === undefined) faults.state = `Not one of ${STATES.join(", ")}.`;
  return { endpoint: numberAt(search, "endpoint", faults), state };
}

function searchOf({ endpoint, state }: ReplayFilter): URLSearchParams {
  return new URLSearchParams({ ...(endpoint === undefined ? {} : { endpoint: String(endpoint) }), ...(state === undefined ? {} : { state }) });
}
