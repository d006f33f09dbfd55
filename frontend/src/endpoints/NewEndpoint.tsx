import { useState } from "react";

import { errorAt } from "../api/problem";
import { ClientInput } from "../clients/ClientInput";
import { useClientNames } from "../clients/clients";
import type { Secret } from "../parts/SecretOnce";
import { EndpointForm } from "./EndpointForm";
import { secretOf, useCreateEndpoint } from "./endpoints";

export function NewEndpoint({ zone, onMade }: { zone: string; onMade: (secret: Secret) => void }) {
  const names = useClientNames(zone).data ?? [];
  const create = useCreateEndpoint(zone, names);
  const [client, setClient] = useState(names[0] ?? "");
  return (
    <EndpointForm
      fields={["client"]}
      error={create.error}
      busy={create.isPending}
      action="Create"
      onSubmit={(body) => create.mutate({ client, ...body }, { onSuccess: ({ secret }) => onMade(secretOf(secret)) })}
    >
      <ClientInput names={names} value={client} onChange={setClient} error={errorAt(create.error, "client")} />
    </EndpointForm>
  );
}
