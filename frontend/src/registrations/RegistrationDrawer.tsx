import { Anchor, Button, Drawer, Group, Stack, Text, Title } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconTrash } from "@tabler/icons-react";
import { Link } from "react-router";

import { pathIn } from "../api/zone";
import { Confirm } from "../parts/Confirm";
import { Facts } from "../parts/Facts";
import { Json } from "../parts/Json";
import { Moment } from "../parts/Moment";
import { whole } from "../parts/text";
import { type Registration, useDeleteRegistration } from "./registrations";

interface Props {
  zone: string;
  registration: Registration | undefined;
  onClose: () => void;
}

export function RegistrationDrawer({ zone, registration, onClose }: Props) {
  return (
    <Drawer
      opened={registration !== undefined}
      onClose={onClose}
      position="right"
      size="lg"
      title={registration === undefined ? "" : `Registration ${registration.id}`}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      {registration !== undefined && <Detail zone={zone} registration={registration} onEnded={onClose} />}
    </Drawer>
  );
}

function Detail({ zone, registration, onEnded }: { zone: string; registration: Registration; onEnded: () => void }) {
  const [asking, { open, close }] = useDisclosure(false);
  const remove = useDeleteRegistration(zone);
  const { id, domain, type, attributes } = registration;
  return (
    <Stack gap="lg">
      <Facts
        facts={[
          ["Client", `${registration.client}, session ${registration.session}`],
          ["Streams", registration.streams.join(", ")],
          ["Callback", <Callback key="callback" zone={zone} registration={registration} />],
          ["Version", registration.version],
          ["Created", <Moment key="created" at={registration.created_at} />],
        ]}
      />
      <section>
        <Title order={2} mb="xs">
          Asks for
        </Title>
        <Json value={{ domain, type, attributes }} label="what it asks for" />
      </section>
      <section>
        <Title order={2}>From</Title>
        <Text size="sm" c="dimmed" mb="xs">
          Events after these places are matched by this version.
        </Text>
        <Facts
          facts={Object.entries(registration.from).map(([stream, cursor]) => [
            stream,
            <span key={stream}>
              {whole(cursor.sequence)} <span className="mono">in segment {cursor.segment}</span>
            </span>,
          ])}
        />
      </section>
      <Group>
        <Button color="red" variant="light" leftSection={<IconTrash size={16} />} onClick={open}>
          Delete
        </Button>
      </Group>
      <Confirm
        opened={asking}
        title={`Delete registration ${id}?`}
        about="Events appended from then on are not matched for it any more. What is owed already is still delivered."
        action="Delete"
        busy={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate(id, { onSuccess: onEnded })}
        onClose={close}
      />
    </Stack>
  );
}

function Callback({ zone, registration: { endpoint, callback } }: { zone: string; registration: Registration }) {
  if (endpoint === null) return "none";
  return (
    <>
      <span className="mono">{callback}</span>{" "}
      <Anchor component={Link} to={`${pathIn(zone, "deliveries")}?endpoint=${endpoint}`} size="sm">
        Deliveries
      </Anchor>
    </>
  );
}
