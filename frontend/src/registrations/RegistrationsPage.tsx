import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconPlus } from "@tabler/icons-react";
import { useState } from "react";
import { useSearchParams } from "react-router";

import { type Faults, isFaulty, numberAt } from "../api/address";
import { useZone } from "../api/zone";
import { FaultAlert } from "../parts/FaultAlert";
import { PageHeader } from "../parts/PageHeader";
import { SecretOnce } from "../parts/SecretOnce";
import { NewRegistrationDrawer } from "./NewRegistrationDrawer";
import { RegistrationDrawer } from "./RegistrationDrawer";
import { RegistrationFilters } from "./RegistrationFilters";
import { RegistrationList } from "./RegistrationList";
import type { Registration, RegistrationFilter } from "./registrations";

export function RegistrationsPage() {
  const zone = useZone();
  const [search, setSearch] = useSearchParams();
  const [creating, { open, close }] = useDisclosure(false);
  const [shown, setShown] = useState<Registration>();
  const [secret, setSecret] = useState<string>();
  const faults: Faults = {};
  const filter = filterOf(search, faults);

  return (
    <>
      <PageHeader title="Registrations" about="Who wants which events, and where the hub calls back.">
        <Button leftSection={<IconPlus size={16} />} onClick={open}>
          New registration
        </Button>
      </PageHeader>
      <RegistrationFilters zone={zone} filter={filter} faults={faults} onChange={(next) => setSearch(searchOf(next))} />
      {isFaulty(faults) ? (
        <FaultAlert faults={faults} search={search} />
      ) : (
        <RegistrationList zone={zone} filter={filter} onOpen={setShown} />
      )}
      <NewRegistrationDrawer
        zone={zone}
        opened={creating}
        onClose={close}
        onMade={(made) => {
          close();
          setSecret(made);
        }}
      />
      <RegistrationDrawer zone={zone} registration={shown} onClose={() => setShown(undefined)} />
      <SecretOnce secret={secret} onClose={() => setSecret(undefined)} />
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
