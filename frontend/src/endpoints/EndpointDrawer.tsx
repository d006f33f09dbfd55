import { Anchor, Button, Drawer, Group, Stack } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconPlayerPause, IconPlayerPlay, IconTrash } from "@tabler/icons-react";
import { Link } from "react-router";

import { pathIn } from "../api/zone";
import { Confirm } from "../parts/Confirm";
import { Facts } from "../parts/Facts";
import { Moment } from "../parts/Moment";
import { ProblemAlert } from "../parts/ProblemAlert";
import { type Endpoint, useChangeEndpoint, useDeleteEndpoint } from "./endpoints";
import { EndpointState } from "./EndpointState";

interface Props {
  zone: string;
  endpoint: Endpoint | undefined;
  onClose: () => void;
}

export function EndpointDrawer({ zone, endpoint, onClose }: Props) {
  return (
    <Drawer
      opened={endpoint !== undefined}
      onClose={onClose}
      position="right"
      size="md"
      title={endpoint === undefined ? "" : `Endpoint ${endpoint.id}`}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      {endpoint !== undefined && <Detail key={endpoint.id} zone={zone} endpoint={endpoint} onClose={onClose} />}
    </Drawer>
  );
}

function Detail({ zone, endpoint, onClose }: { zone: string; endpoint: Endpoint; onClose: () => void }) {
  const [asking, { open, close }] = useDisclosure(false);
  const change = useChangeEndpoint(zone);
  const remove = useDeleteEndpoint(zone);
  const now = change.data ?? endpoint;
  return (
    <Stack gap="lg">
      <Facts
        facts={[
          ["URL", <span key="url" className="mono">{now.url}</span>],
          ["Client", now.client],
          ["State", <EndpointState key="state" endpoint={now} />],
          ["Order", now.ordered ? "in order, one event of a stream at a time" : "in parallel"],
          ["Description", now.description || "none"],
          ["Created", <Moment key="created" at={now.created_at} />],
          ["Changed", <Moment key="changed" at={now.changed_at} />],
        ]}
      />
      <Group gap="md">
        <Anchor component={Link} to={`${pathIn(zone, "deliveries")}?endpoint=${now.id}`} size="sm">
          Its deliveries
        </Anchor>
        <Anchor component={Link} to={`${pathIn(zone, "registrations")}?endpoint=${now.id}`} size="sm">
          Its registrations
        </Anchor>
      </Group>
      {change.isError && <ProblemAlert error={change.error} />}
      <Group gap="xs">
        <Button
          variant="default"
          loading={change.isPending}
          leftSection={now.enabled ? <IconPlayerPause size={16} /> : <IconPlayerPlay size={16} />}
          onClick={() => change.mutate({ id: now.id, enabled: !now.enabled })}
        >
          {now.enabled ? "Disable" : "Enable"}
        </Button>
        <Button color="red" variant="light" leftSection={<IconTrash size={16} />} onClick={open}>
          Delete
        </Button>
      </Group>
      <Confirm
        opened={asking}
        title={`Delete endpoint ${now.id}?`}
        about="What is still owed to it is cancelled. Registrations that name it must be deleted before."
        action="Delete"
        busy={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate(now.id, { onSuccess: onClose })}
        onClose={close}
      />
    </Stack>
  );
}
