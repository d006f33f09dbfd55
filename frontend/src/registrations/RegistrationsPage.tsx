import { useState } from "react";
import { useSearchParams } from "react-router";

import { type Faults, isFaulty, numberAt } from "../api/address";
import { useZone } from "../api/zone";
import { FaultAlert } from "../parts/FaultAlert";
import { New } from "../parts/New";
import { PageHeader } from "../parts/PageHeader";
import { Side } from "../parts/Side";
import { NewRegistration } from "./NewRegistration";
import { RegistrationDetail } from "./RegistrationDetail";
import { RegistrationFilters } from "./RegistrationFilters";
import { RegistrationList } from "./RegistrationList";
import type { RegistrationFilter } from "./registrations";

export function RegistrationsPage() {
  const zone = useZone();
  const [search, setSearch] = useSearchParams();
  const [shown, setShown] = useState<number>();
  const close = () => setShown(undefined);
  const faults: Faults = {};
  const filter = filterOf(search, faults);

  return (
    <>
      <PageHeader title="Registrations" about="Who wants which events, and where the hub calls back.">
        <New label="New registration" size="lg">
          {(made) => <NewRegistration zone={zone} onMade={made} />}
        </New>
      </PageHeader>
      <RegistrationFilters zone={zone} filter={filter} faults={faults} onChange={(next) => setSearch(searchOf(next))} />
      {isFaulty(faults) ? (
        <FaultAlert faults={faults} search={search} />
      ) : (
        <RegistrationList zone={zone} filter={filter} onOpen={setShown} />
      )}
      <Side of={shown} title={(id) => `Registration ${id}`} onClose={close}>
        {(id) => <RegistrationDetail key={id} zone={zone} id={id} onEnded={close} />}
      </Side>
    </>
  );
}

function filterOf(search: URLSearchParams, faults: Faults): RegistrationFilter {
  return {
    client: search.get("client") ?? undefined,
    stream: search.get("stream") ?? undefined,
    endpoint: numberAt(search, "endpoint", faults),
  };
}

function searchOf(filter: RegistrationFilter): URLSearchParams {
  const given = Object.entries(filter).filter(([, value]) => value !== undefined && value !== "");
  return new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
}
