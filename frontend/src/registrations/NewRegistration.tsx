import { useState } from "react";

import { errorAt } from "../api/problem";
import { ClientInput } from "../clients/ClientInput";
import { useClientNames } from "../clients/clients";
import { secretOf } from "../endpoints/endpoints";
import type { Secret } from "../parts/SecretOnce";
import { type First, RegistrationForm } from "./RegistrationForm";
import { useCreateRegistration } from "./registrations";

interface Props {
  zone: string;
  first?: First; // what it asks for to begin with
  onMade: (secret?: Secret) => void;
}

export function NewRegistration({ zone, first, onMade }: Props) {
  const names = useClientNames(zone).data ?? [];
  const create = useCreateRegistration(zone, names);
  const [client, setClient] = useState(names[0] ?? "");
  return (
    <RegistrationForm
      zone={zone}
      client={client}
      first={first}
      error={create.error}
      busy={create.isPending}
      action="Register"
      onSubmit={(asked, callback) =>
        create.mutate(
          {
            client,
            ...asked,
            ...(callback.kind === "endpoint" ? { endpoint: callback.endpoint } : {}),
            ...(callback.kind === "url" ? { callback: callback.url } : {}),
          },
          { onSuccess: (secret) => onMade(secret === undefined ? undefined : secretOf(secret)) },
        )
      }
    >
      <ClientInput names={names} value={client} onChange={setClient} error={errorAt(create.error, "client")} />
    </RegistrationForm>
  );
}
