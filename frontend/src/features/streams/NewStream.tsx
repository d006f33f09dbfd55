import { TextInput } from "@mantine/core";
import { useState } from "react";

import { errorAt } from "../../api/problem";
import { Form } from "../../parts/Form";
import { changeOf, DEFAULTS, NOT_TRANSIENT } from "./policy";
import { PolicyFields } from "./PolicyFields";
import { type Policy, usePutStream } from "./streams";

const FIELDS = ["stream", ...Object.keys(DEFAULTS)];

export function NewStream({ zone, onMade }: { zone: string; onMade: (name: string) => void }) {
  const put = usePutStream(zone, undefined);
  const [name, setName] = useState("");
  const [policy, setPolicy] = useState(DEFAULTS);
  const submit = () => put.mutate({ name, policy: changeOf(DEFAULTS, policy) }, { onSuccess: () => onMade(name) });
  return (
    <Form fields={FIELDS} error={put.error} busy={put.isPending} action="Create" onSubmit={submit} ready={name !== ""}>
      <TextInput
        label="Name"
        description="Unique in the zone. Dots make a hierarchy that grants can name: shop.orders"
        placeholder="orders"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        error={errorAt(put.error, "stream")}
        data-autofocus
      />
      <PolicyFields policy={policy} isNew error={put.error} onChange={(change) => setPolicy(consistent({ ...policy, ...change }))} />
    </Form>
  );
}

/** Return the policy; for a transient stream, without the fields that do not apply. */
function consistent(policy: Policy): Policy {
  if (policy.durability !== "transient") return policy;
  return { ...policy, ...Object.fromEntries(NOT_TRANSIENT.map((name) => [name, DEFAULTS[name]])) };
}
