import { Anchor, Group, Stack, Title } from "@mantine/core";
import { Link } from "react-router";

import { pathIn } from "../../api/zone";
import { Empty } from "../../parts/Empty";
import { Listed } from "../../parts/Listed";
import { New } from "../../parts/New";
import { Removal } from "../../parts/Removal";
import { ChangeLimits } from "../limits/ChangeLimits";
import { LimitsTable } from "../limits/LimitsTable";
import { ClientGroups } from "./ClientGroups";
import { useDeleteClient, useKeys, useListeners } from "./clients";
import { KeyActions, KEY_COLUMNS } from "./KeyRow";
import { NewKeyForm } from "./KeyForm";
import { LISTENER_COLUMNS } from "./ListenerColumns";

interface Props {
  zone: string;
  name: string;
  onEnded: () => void;
}

/** A client with its keys, its limits and its listeners. */
export function ClientDetail({ zone, name, onEnded }: Props) {
  const remove = useDeleteClient(zone, name);
  const columns = [...KEY_COLUMNS, { title: "Actions", right: true, cell: KeyActions(zone) }];
  return (
    <Stack gap="lg">
      <Group gap="md">
        <Anchor component={Link} to={`${pathIn(zone, "registrations")}?client=${encodeURIComponent(name)}`} size="sm">
          Its registrations
        </Anchor>
      </Group>
      <ClientGroups zone={zone} name={name} />
      <section>
        <Group justify="space-between" mb="xs">
          <Title order={2}>Keys</Title>
          <New label="New key" variant="default" role="admin">
            {(made) => <NewKeyForm zone={zone} client={name} onMade={made} />}
          </New>
        </Group>
        <Listed
          list={useKeys(zone, name)}
          label="Keys"
          columns={columns}
          keyOf={(key) => key.public_id}
          minWidth={620}
          empty={<Empty title="No keys" about="A client needs a key to use the API. A key has grants, and is shown once." />}
        />
      </section>
      <section>
        <Group justify="space-between" mb="xs">
          <Title order={2}>Limits</Title>
          <ChangeLimits zone={zone} client={name} />
        </Group>
        <LimitsTable zone={zone} client={name} />
      </section>
      <section>
        <Title order={2} mb="xs">
          Listeners
        </Title>
        <Listed
          list={useListeners(zone, name)}
          label="Listeners"
          columns={LISTENER_COLUMNS}
          keyOf={(listener) => listener.id}
          minWidth={820}
          empty={<Empty title="No listeners in the last 30 days" about="A listener is a subscription to one stream over one connection. The list shows where each started, how many events were delivered, and how it ended." />}
        />
      </section>
      <div>
        <Removal
          title={`Delete the client ${name}?`}
          about="Its keys, registrations and endpoints are deleted too. Its events remain."
          action="Delete the client"
          removal={remove}
          onConfirm={() => remove.mutate(undefined, { onSuccess: onEnded })}
        />
      </div>
    </Stack>
  );
}
