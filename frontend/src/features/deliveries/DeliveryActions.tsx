import { Button, Checkbox, Group, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconAdjustments, IconPlayerSkipForward, IconSend, IconTrash } from "@tabler/icons-react";
import { useState } from "react";

import { Confirm } from "../../parts/Confirm";
import { May } from "../../parts/May";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { capital, stateText, whole } from "../../parts/text";
import { type OneDelivery, useResend, useSetAside } from "./deliveries";

const FORCED: readonly string[] = ["delivered", "expired"]; // sent again only with `force`
const DISCARDED: readonly string[] = ["dead_lettered", "dropped", "cancelled", "expired"];

interface Props {
  zone: string;
  delivery: OneDelivery;
}

/** What an operator may do with a delivery in its state. */
export function DeliveryActions({ zone, delivery }: Props) {
  const { id, state, stream, sequence, endpoint } = delivery;
  const resend = useResend(zone, id);
  const forced = FORCED.includes(state);
  return (
    <Stack gap="xs">
      {resend.isError && <ProblemAlert error={resend.error} />}
      <May>
        <Group gap="xs">
          {!forced && (
            <Button leftSection={<IconSend size={16} />} loading={resend.isPending} onClick={() => resend.mutate({ force: false, new_id: false })}>
              Resend
            </Button>
          )}
          <ResendWith zone={zone} delivery={delivery} forced={forced} />
          {state === "pending" && (
            <SetAside
              zone={zone}
              id={id}
              action="skip"
              about={`${stream} ${whole(sequence)} is not posted to endpoint ${endpoint}, and an ordered lane continues with the next delivery. It can be sent again later.`}
            />
          )}
          {DISCARDED.includes(state) && (
            <SetAside
              zone={zone}
              id={id}
              action="discard"
              about={`It is no longer listed as ${stateText(state)}, and recovery runs skip it. It can be sent again from its page.`}
            />
          )}
        </Group>
      </May>
      <Text size="sm" c="dimmed" role="status">
        {resend.isSuccess && "Sent again: its attempts appear below."}
      </Text>
    </Stack>
  );
}

/** Sends it again with options, after a confirmation. */
function ResendWith({ zone, delivery: { id, state }, forced }: Props & { forced: boolean }) {
  const [asking, { open, close }] = useDisclosure(false);
  const [force, setForce] = useState(false);
  const [newId, setNewId] = useState(false);
  const resend = useResend(zone, id);
  return (
    <>
      <Button
        variant="default"
        leftSection={<IconAdjustments size={16} />}
        onClick={() => {
          resend.reset();
          open();
        }}
      >
        {forced ? "Force a resend" : "Resend with options"}
      </Button>
      <Confirm
        opened={asking}
        title={forced ? "Force a resend?" : "Resend with options"}
        about={
          forced
            ? `${state === "delivered" ? "It was delivered" : "Its event has expired"}. It is posted again all the same. A receiver that stores handled ids ignores it, unless it has a new webhook-id.`
            : "It is posted before all other deliveries of the endpoint, under the same webhook-id unless you ask for a new one."
        }
        action="Resend"
        harmless
        busy={resend.isPending}
        error={resend.error}
        onConfirm={() => resend.mutate({ force: forced || force, new_id: newId }, { onSuccess: close })}
        onClose={close}
      >
        <Stack gap="sm">
          {!forced && (
            <Checkbox
              label="Force"
              description="Send it even if the event has expired or the circuit is open."
              checked={force}
              onChange={(event) => setForce(event.currentTarget.checked)}
            />
          )}
          <Checkbox
            label="New webhook-id"
            description="Receivers handle it again, also those that store handled ids."
            checked={newId}
            onChange={(event) => setNewId(event.currentTarget.checked)}
          />
        </Stack>
      </Confirm>
    </>
  );
}

interface SetAsideProps {
  zone: string;
  id: string;
  action: "skip" | "discard";
  about: string;
}

/** Skips or discards it, after a confirmation. */
function SetAside({ zone, id, action, about }: SetAsideProps) {
  const [asking, { open, close }] = useDisclosure(false);
  const change = useSetAside(zone, id, action);
  return (
    <>
      <Button
        color={action === "skip" ? undefined : "red"}
        variant={action === "skip" ? "default" : "light"}
        leftSection={action === "skip" ? <IconPlayerSkipForward size={16} /> : <IconTrash size={16} />}
        onClick={() => {
          change.reset();
          open();
        }}
      >
        {capital(action)}
      </Button>
      <Confirm
        opened={asking}
        title={`${capital(action)} this delivery?`}
        about={about}
        action={capital(action)}
        busy={change.isPending}
        error={change.error}
        onConfirm={() => change.mutate(undefined, { onSuccess: close })}
        onClose={close}
      />
    </>
  );
}
