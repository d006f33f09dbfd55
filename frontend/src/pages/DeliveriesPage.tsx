import { isFaulty, useAddress } from "../api/address";
import { useZone } from "../api/zone";
import { useEndpointChoice } from "../features/endpoints/endpoints";
import { FaultAlert } from "../parts/FaultAlert";
import { PageHeader } from "../parts/PageHeader";
import { Side } from "../parts/Side";
import { ChooseEndpoint } from "../features/deliveries/ChooseEndpoint";
import { isWhole } from "../features/deliveries/deliveries";
import { DeliveryDetail } from "../features/deliveries/DeliveryDetail";
import { DeliveryFilters } from "../features/deliveries/DeliveryFilters";
import { DeliveryList } from "../features/deliveries/DeliveryList";
import { NoEndpoint } from "../features/deliveries/NoEndpoint";
import { searchRequestOf, opening, searchOf } from "../features/deliveries/search";

export function DeliveriesPage() {
  const zone = useZone();
  const [search, setSearch] = useAddress();
  const endpoints = useEndpointChoice(zone, undefined);
  const { filter, faults } = searchRequestOf(search);

  return (
    <>
      <PageHeader title="Deliveries" about="Deliveries of events to endpoints, with their state and attempts." />
      <DeliveryFilters zone={zone} filter={filter} faults={faults} onChange={(part) => setSearch((latest) => searchOf({ ...searchRequestOf(latest).filter, ...part }))} />
      {isFaulty(faults) ? (
        <FaultAlert faults={faults} search={search} />
      ) : isWhole(filter) ? (
        <DeliveryList zone={zone} filter={filter} onOpen={(delivery) => setSearch((latest) => opening(latest, delivery))} />
      ) : (
        endpoints.isSuccess && (endpoints.data.items.length === 0 ? <NoEndpoint zone={zone} /> : <ChooseEndpoint zone={zone} />)
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
