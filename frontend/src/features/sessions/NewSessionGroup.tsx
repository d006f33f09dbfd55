import { Select, TextInput } from "@mantine/core";
import { useState } from "react";

import { errorAt } from "../../api/problem";
import { Form } from "../../parts/Form";
import { ClientInput } from "../clients/ClientInput";
import { DELIVERY_FIELDS, deliveryFields, DeliveryInputs, deliveryOf } from "./DeliveryInputs";
import { isSharing, type Sharing, useCreateSessionGroup } from "./sessions";

const SHARING = [
  { value: "every", label: "every member" },
  { value: "one", label: "one member" },
];

/** Creates a session group of a client. */
export function NewSessionGroup({ zone, onMade }: { zone: string; onMade: (id: number) => void }) {
  const create = useCreateSessionGroup(zone);
  const [client, setClient] = useState("");
  const [name, setName] = useState("");
  const [sharing, setSharing] = useState<Sharing>("every");
  const [shareBy, setShareBy] = useState("");
  const [delivery, setDelivery] = useState(deliveryOf);
  const shared = sharing === "one" ? { sharing, share_by: shareBy } : { sharing };
  return (
    <Form
      fields={["client", "name", "sharing", "share_by", ...DELIVERY_FIELDS]}
      error={create.error}
      busy={create.isPending}
      action="Create"
      ready={name !== "" && client !== ""}
      onSubmit={() => create.mutate({ client, name, ...shared, ...deliveryFields(delivery) }, { onSuccess: ({ id }) => onMade(id) })}
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
      <Select
        label="Each event goes to"
        description="It cannot be changed later. With one member, the members are competing consumers."
        data={SHARING}
        value={sharing}
        allowDeselect={false}
        onChange={(next) => isSharing(next) && setSharing(next)}
        error={errorAt(create.error, "sharing")}
      />
      {sharing === "one" && (
        <TextInput
          label="Key"
          description="Optional: an attribute, or @ with a field of the envelope. The events of one key go to one member at a time, in order. It cannot be changed later."
          placeholder="customer.id"
          value={shareBy}
          onChange={(event) => setShareBy(event.currentTarget.value)}
          error={errorAt(create.error, "share_by")}
        />
      )}
      <DeliveryInputs values={delivery} error={create.error} onChange={setDelivery} />
    </Form>
  );
}
