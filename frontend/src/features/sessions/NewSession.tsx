import { Select, TextInput } from "@mantine/core";
import { useState } from "react";

import { errorAt } from "../../api/problem";
import { Form } from "../../parts/Form";
import { ClientInput } from "../clients/ClientInput";
import { DELIVERY_FIELDS, deliveryFields, DeliveryInputs, deliveryOf } from "./DeliveryInputs";
import { GroupInput } from "./GroupInput";
import { KINDS, type SessionKind, useCreateSession } from "./sessions";
import { suppliesOf, SuppliesInput } from "./SuppliesInput";

/** Creates a session of a client. */
export function NewSession({ zone, onMade }: { zone: string; onMade: (id: number) => void }) {
  const create = useCreateSession(zone);
  const [client, setClient] = useState("");
  const [name, setName] = useState("");
  const [kind, setKind] = useState<SessionKind>("consumer");
  const [supplies, setSupplies] = useState("");
  const [group, setGroup] = useState<string | null>(null);
  const [delivery, setDelivery] = useState(deliveryOf);
  const own =
    kind === "supplier"
      ? { supplies: suppliesOf(supplies) }
      : kind === "consumer"
        ? { ...deliveryFields(delivery), ...(group === null ? {} : { group }) }
        : {};
  return (
    <Form
      fields={["client", "name", "kind", "supplies", "group", ...DELIVERY_FIELDS]}
      error={create.error}
      busy={create.isPending}
      action="Create"
      ready={name !== "" && client !== "" && (kind !== "supplier" || supplies.trim() !== "")}
      onSubmit={() => create.mutate({ client, name, kind, ...own }, { onSuccess: ({ id }) => onMade(id) })}
    >
      <ClientInput zone={zone} value={client} onChange={setClient} error={errorAt(create.error, "client")} />
      <TextInput
        label="Name"
        description="Unique among the client's sessions."
        placeholder="reader"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        error={errorAt(create.error, "name")}
      />
      <Select
        label="Kind"
        description="Suppliers emit, consumers register and receive events, admins manage sessions."
        data={KINDS}
        value={kind}
        allowDeselect={false}
        onChange={(next) => setKind(KINDS.find((one) => one === next) ?? kind)}
        error={errorAt(create.error, "kind")}
      />
      {kind === "supplier" && <SuppliesInput value={supplies} error={create.error} onChange={setSupplies} />}
      {kind === "consumer" && (
        <>
          <GroupInput zone={zone} value={group} onChange={setGroup} error={errorAt(create.error, "group")} />
          {group === null && <DeliveryInputs values={delivery} error={create.error} onChange={setDelivery} />}
        </>
      )}
    </Form>
  );
}
