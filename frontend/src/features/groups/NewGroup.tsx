import { Switch, TextInput } from "@mantine/core";
import { useState } from "react";

import { errorAt } from "../../api/problem";
import { ClientInput } from "../clients/ClientInput";
import { Form } from "../../parts/Form";
import { CLIENT_ALONE, ownerFields } from "../sessions/owners";
import { OwnerInput } from "../sessions/OwnerSelect";
import { useCreateGroup } from "./groups";

export function NewGroup({ zone, onMade }: { zone: string; onMade: (id: number) => void }) {
  const create = useCreateGroup(zone);
  const [client, setClient] = useState("");
  const [owner, setOwner] = useState(CLIENT_ALONE);
  const [name, setName] = useState("");
  const [suspended, setSuspended] = useState(false);
  return (
    <Form
      fields={["client", "session", "session_group", "name", "suspended"]}
      error={create.error}
      busy={create.isPending}
      action="Create"
      ready={name !== "" && client !== ""}
      onSubmit={() => create.mutate({ client, ...ownerFields(owner), name, suspended }, { onSuccess: ({ id }) => onMade(id) })}
    >
      <ClientInput
        zone={zone}
        value={client}
        onChange={(next) => {
          setClient(next);
          setOwner(CLIENT_ALONE);
        }}
        error={errorAt(create.error, "client")}
      />
      <OwnerInput zone={zone} client={client} value={owner} onChange={setOwner} error={errorAt(create.error, "session") ?? errorAt(create.error, "session_group")} />
      <TextInput
        label="Name"
        description="Unique among the client's groups."
        placeholder="night"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        error={errorAt(create.error, "name")}
      />
      <Switch
        label="Suspended"
        description="Its registrations match no events until it is resumed."
        checked={suspended}
        onChange={(event) => setSuspended(event.currentTarget.checked)}
        error={errorAt(create.error, "suspended")}
      />
    </Form>
  );
}
