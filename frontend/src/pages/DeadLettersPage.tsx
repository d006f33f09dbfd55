import { Anchor } from "@mantine/core";
import { Link } from "react-router";

import { type Faults, isFaulty, numberAt, useAddress } from "../api/address";
import { pathIn, useZone } from "../api/zone";
import { FaultAlert } from "../parts/FaultAlert";
import { PageHeader } from "../parts/PageHeader";
import { Side } from "../parts/Side";
import { DeadLetterFilters } from "../features/deadLetters/DeadLetterFilters";
import { DeadLetterList } from "../features/deadLetters/DeadLetterList";
import type { DeadLetterFilter } from "../features/deadLetters/deadLetters";
import { ENDED } from "../features/deliveries/deliveries";
import { DeliveryDetail } from "../features/deliveries/DeliveryDetail";
import { opening, searchOf, stateAt, textAt } from "../features/deliveries/search";

export function DeadLettersPage() {
  const zone = useZone();
  const [search, setSearch] = useAddress();
  const faults: Faults = {};
  const filter = filterOf(search, faults);
  return (
    <>
      <PageHeader title="Dead letters" about="Deliveries of all endpoints that ended without success, by endpoint and cause.">
        <Anchor component={Link} to={pathIn(zone, "replays")} size="sm">
          Replays
        </Anchor>
      </PageHeader>
      <DeadLetterFilters zone={zone} filter={filter} faults={faults} onChange={(part) => setSearch((latest) => searchOf({ ...filterOf(latest, {}), ...part }))} />
      {isFaulty(faults) ? (
        <FaultAlert faults={faults} search={search} />
      ) : (
        <DeadLetterList zone={zone} filter={filter} onOpen={(delivery) => setSearch((latest) => opening(latest, delivery))} />
      )}
      <Side
        of={search.get("delivery") ?? undefined}
        title={() => "Delivery"}
        size="xl"
        onClose={() => setSearch((latest) => opening(latest, undefined), { replace: true })}
      >
        {(delivery) => <DeliveryDetail key={delivery} zone={zone} id={delivery} />}
      </Side>
    </>
  );
}

function filterOf(search: URLSearchParams, faults: Faults): DeadLetterFilter {
  return {
    endpoint: numberAt(search, "endpoint", faults),
    client: textAt(search, "client"),
    stream: textAt(search, "stream"),
    state: stateAt(search, ENDED, faults),
  };
}
