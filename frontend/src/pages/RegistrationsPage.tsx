import { type Faults, isFaulty, numberAt, useAddress } from "../api/address";
import { useZone } from "../api/zone";
import { FaultAlert } from "../parts/FaultAlert";
import { New } from "../parts/New";
import { PageHeader } from "../parts/PageHeader";
import { Side } from "../parts/Side";
import { NewRegistration } from "../features/registrations/NewRegistration";
import { RegistrationDetail } from "../features/registrations/RegistrationDetail";
import { RegistrationFilters } from "../features/registrations/RegistrationFilters";
import { RegistrationList } from "../features/registrations/RegistrationList";
import type { RegistrationFilter } from "../features/registrations/registrations";

export function RegistrationsPage() {
  const zone = useZone();
  const [search, setSearch] = useAddress();
  const faults: Faults = {};
  const filter = filterOf(search, faults);
  const shown = numberAt(search, "registration", faults);
  const show = (registration: number | undefined) => setSearch((latest) => searchOf({ ...filterOf(latest, {}), registration }));
  const close = () => setSearch((latest) => searchOf(filterOf(latest, {})), { replace: true });

  return (
    <>
      <PageHeader title="Registrations" about="Registrations with filter, callback and state.">
        <New label="New registration" size="xl">
          {(made) => <NewRegistration zone={zone} onMade={made} />}
        </New>
      </PageHeader>
      <RegistrationFilters zone={zone} filter={filter} faults={faults} onChange={(part) => setSearch((latest) => searchOf({ ...filterOf(latest, {}), ...part }))} onId={show} />
      {isFaulty(faults) ? (
        <FaultAlert faults={faults} search={search} />
      ) : (
        <RegistrationList zone={zone} filter={filter} onOpen={show} />
      )}
      <Side of={shown} title={(id) => `Registration ${id}`} size="xl" onClose={close}>
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
    group: search.get("group") ?? undefined,
    session: search.get("session") ?? undefined,
    session_group: search.get("session_group") ?? undefined,
    suspended: flagAt(search, "suspended", faults),
    key: search.get("key") ?? undefined,
  };
}

function flagAt(search: URLSearchParams, name: string, faults: Faults): boolean | undefined {
  const text = search.get(name);
  if (text !== null && text !== "true" && text !== "false") faults[name] = "Neither true nor false.";
  return text === null ? undefined : text === "true";
}

/** Write the filter and the open registration to the address. */
function searchOf(filter: RegistrationFilter & { registration?: number }): URLSearchParams {
  const entries = Object.entries(filter).filter(([, value]) => value !== undefined && value !== "");
  return new URLSearchParams(entries.map(([name, value]) => [name, String(value)]));
}
