import { Switch, TextInput } from "@mantine/core";
import { useState } from "react";

import { errorAt } from "../../api/problem";
import { ClientInput } from "../clients/ClientInput";
import { Form } from "../../parts/Form";
import { useCreateGroup } from "./groups";

export function NewGroup({ zone, onMade }: { zone: string; onMade: (id: number) => void }) {
  const create = useCreateGroup(zone);
  const [client, setClient] = useState("");
  const [name, setName] = useState("");
  const [suspended, setSuspended] = useState(false);
  return (
    <Form
      fields={["client", "name", "suspended"]}
      error={create.error}
      busy={create.isPending}
      action="Create"
      ready={name !== "" && client !== ""}
      onSubmit={() => create.mutate({ client, name, suspended }, { onSuccess: ({ id }) => onMade(id) })}
    >
      <ClientInput zone={zone} value={client} onChange={setClient} error={errorAt(create.error, "client")} />
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
