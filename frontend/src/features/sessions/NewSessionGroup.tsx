import { TextInput } from "@mantine/core";
import { useState } from "react";

import { errorAt } from "../../api/problem";
import { Form } from "../../parts/Form";
import { ClientInput } from "../clients/ClientInput";
import { DELIVERY_FIELDS, deliveryFields, DeliveryInputs, deliveryOf } from "./DeliveryInputs";
import { useCreateSessionGroup } from "./sessions";

/** Creates a session group of a client. */
export function NewSessionGroup({ zone, onMade }: { zone: string; onMade: (id: number) => void }) {
  const create = useCreateSessionGroup(zone);
  const [client, setClient] = useState("");
  const [name, setName] = useState("");
  const [delivery, setDelivery] = useState(deliveryOf);
  return (
    <Form
      fields={["client", "name", ...DELIVERY_FIELDS]}
      error={create.error}
      busy={create.isPending}
      action="Create"
      ready={name !== "" && client !== ""}
      onSubmit={() => create.mutate({ client, name, ...deliveryFields(delivery) }, { onSuccess: ({ id }) => onMade(id) })}
    >
      <ClientInput zone={zone} value={client} onChange={setClient} error={errorAt(create.error, "client")} />
      <TextInput
        label="Name"
        description="Unique in the zone."
        placeholder="team"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        error={errorAt(create.error, "name")}
      />
      <DeliveryInputs values={delivery} error={create.error} onChange={setDelivery} />
    </Form>
  );
}
