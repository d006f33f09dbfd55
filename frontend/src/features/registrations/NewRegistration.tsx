import { useState } from "react";

import { errorAt } from "../../api/problem";
import { ClientInput } from "../clients/ClientInput";
import { secretOf } from "../endpoints/endpoints";
import type { Secret } from "../../parts/SecretOnce";
import { type First, RegistrationForm } from "./RegistrationForm";
import { useCreateRegistration } from "./registrations";

interface Props {
  zone: string;
  first?: First; // initial filter
  onMade: (secret?: Secret) => void;
}

export function NewRegistration({ zone, first, onMade }: Props) {
  const create = useCreateRegistration(zone);
  const [client, setClient] = useState("");
  return (
    <RegistrationForm
      zone={zone}
      client={client}
      first={first}
      error={create.error}
      busy={create.isPending}
      action="Register"
      ready={client !== ""}
      onSubmit={(request, callback) =>
        create.mutate(
          {
            client,
            ...request,
            ...(callback.kind === "endpoint" ? { endpoint: callback.endpoint } : {}),
            ...(callback.kind === "url" ? { callback: callback.url } : {}),
          },
          { onSuccess: (secret) => onMade(secret === undefined ? undefined : secretOf(secret)) },
        )
      }
    >
      <ClientInput zone={zone} value={client} onChange={setClient} error={errorAt(create.error, "client")} />
    </RegistrationForm>
  );
}
