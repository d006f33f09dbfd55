import { Button, Drawer, Group, Stack, Switch, TextInput } from "@mantine/core";
import { type SubmitEvent, useState } from "react";

import { errorAt } from "../api/problem";
import { ClientInput } from "../clients/ClientInput";
import { useClients } from "../clients/clients";
import { ProblemAlert } from "../parts/ProblemAlert";
import { useCreateEndpoint } from "./endpoints";

const FIELDS = ["client", "url", "description"];

interface Props {
  zone: string;
  opened: boolean;
  onClose: () => void;
  onMade: (secret: string) => void;
}

export function NewEndpointDrawer({ zone, opened, onClose, onMade }: Props) {
  return (
    <Drawer
      opened={opened}
      onClose={onClose}
      position="right"
      size="md"
      title="New endpoint"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <EndpointForm zone={zone} onMade={onMade} />
    </Drawer>
  );
}

function EndpointForm({ zone, onMade }: Pick<Props, "zone" | "onMade">) {
  const clients = useClients(zone);
  const names = clients.data ?? [];
  const create = useCreateEndpoint(zone, names);
  const [client, setClient] = useState(names[0] ?? "");
  const [url, setUrl] = useState("");
  const [description, setDescription] = useState("");
  const [ordered, setOrdered] = useState(false);
  const elsewhere = create.isError && !FIELDS.some((field) => errorAt(create.error, field) !== undefined);

  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    create.mutate({ client, url, description, ordered }, { onSuccess: ({ secret }) => onMade(secret) });
  };

  return (
    <form onSubmit={submit} noValidate>
      <Stack gap="md">
        {elsewhere && <ProblemAlert error={create.error} />}
        <ClientInput names={names} value={client} onChange={setClient} error={errorAt(create.error, "client")} />
        <TextInput
          label="URL"
          type="url"
          placeholder="https://example.org/hook"
          value={url}
          onChange={(event) => setUrl(event.currentTarget.value)}
          error={errorAt(create.error, "url")}
        />
        <TextInput
          label="Description"
          value={description}
          onChange={(event) => setDescription(event.currentTarget.value)}
          error={errorAt(create.error, "description")}
        />
        <Switch
          label="In order"
          description="One event of a stream at a time; a retry holds the next ones back."
          checked={ordered}
          onChange={(event) => setOrdered(event.currentTarget.checked)}
        />
        <Group justify="end">
          <Button type="submit" loading={create.isPending}>
            Create
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
