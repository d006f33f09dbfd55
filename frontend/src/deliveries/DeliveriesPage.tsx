import { useState } from "react";
import { useSearchParams } from "react-router";

import { useZone } from "../api/zone";
import { useEndpointChoice } from "../endpoints/endpoints";
import { PageHeader } from "../parts/PageHeader";
import { type DeliveryFilter, isWhole } from "./deliveries";
import { DeliveryDrawer } from "./DeliveryDrawer";
import { DeliveryFilters } from "./DeliveryFilters";
import { DeliveryList } from "./DeliveryList";
import { NoEndpoint } from "./NoEndpoint";
import { filterOf, searchOf } from "./search";

export function DeliveriesPage() {
  const zone = useZone();
  const [search, setSearch] = useSearchParams();
  const [shown, setShown] = useState<string>();
  const endpoints = useEndpointChoice(zone, undefined);
  const asked = filterOf(search);
  const first = endpoints.data?.items[0]?.id;
  const filter: DeliveryFilter = isWhole(asked) ? asked : { endpoint: first, state: asked.state };

  return (
    <>
      <PageHeader title="Deliveries" about="What is owed to an endpoint, and what became of it." />
      <DeliveryFilters zone={zone} filter={filter} onChange={(next) => setSearch(searchOf(next))} />
      {isWhole(filter) ? (
        <DeliveryList zone={zone} filter={filter} onOpen={setShown} />
      ) : (
        endpoints.isSuccess && <NoEndpoint zone={zone} />
      )}
      <DeliveryDrawer zone={zone} delivery={shown} onClose={() => setShown(undefined)} />
    </>
  );
}
