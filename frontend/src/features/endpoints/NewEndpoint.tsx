import { useState } from "react";

import { errorAt } from "../../api/problem";
import { ClientInput } from "../clients/ClientInput";
import type { Secret } from "../../parts/SecretOnce";
import { EndpointForm } from "./EndpointForm";
import { secretOf, useCreateEndpoint } from "./endpoints";

export function NewEndpoint({ zone, onMade }: { zone: string; onMade: (secret: Secret) => void }) {
  const create = useCreateEndpoint(zone);
  const [client, setClient] = useState("");
  return (
    <EndpointForm
      fields={["client"]}
      error={create.error}
      busy={create.isPending}
      action="Create"
      ready={client !== ""}
      onSubmit={(body) => create.mutate({ client, ...body }, { onSuccess: ({ secret }) => onMade(secretOf(secret)) })}
    >
      <ClientInput zone={zone} value={client} onChange={setClient} error={errorAt(create.error, "client")} />
    </EndpointForm>
  );
}
