import { Button, Group, Stack } from "@mantine/core";
import { useState } from "react";

import { Confirm } from "../../parts/Confirm";
import type { Column } from "../../parts/DataTable";
import { May } from "../../parts/May";
import { Moment } from "../../parts/Moment";
import { Side } from "../../parts/Side";
import { State } from "../../parts/State";
import { type Grant, type Key, useChangeKey, useRevokeKey } from "./clients";
import { KeyForm } from "./KeyForm";

export const KEY_COLUMNS: Column<Key>[] = [
  {
    title: "Key",
    cell: ({ public_id: id, label }) => (
      <>
        <span className="mono">{id}</span> {label}
      </>
    ),
  },
  { title: "May", cell: ({ grants }) => <Grants grants={grants} /> },
  { title: "From", cell: ({ allowed_addresses: from }) => <Addresses from={from} /> },
  { title: "State", cell: (key) => <KeyState value={key} /> },
];

function Grants({ grants }: { grants: Grant[] }) {
  return (
    <Stack gap={2}>
      {grants.map(({ action, streams }) => (
        <span key={`${action} ${streams}`}>
          {action} <span className="mono">{streams}</span>
        </span>
      ))}
    </Stack>
  );
}

function Addresses({ from }: { from: readonly string[] | null }) {
  if (from === null) return "everywhere";
  return (
    <Stack gap={2}>
      {from.map((one) => (
        <span key={one} className="mono">
          {one}
        </span>
      ))}
    </Stack>
  );
}

function KeyState({ value: { revoked_at: revoked, expires_at: expires } }: { value: Key }) {
  const [now] = useState(Date.now);
  if (revoked !== null) return <State state="ended" label="revoked" />;
  if (expires === null) return <State state="ok" label="valid" />;
  const over = Date.parse(expires) < now;
  return (
    <Group gap={6} wrap="nowrap">
      <State state={over ? "ended" : "ok"} label={over ? "expired" : "valid until"} />
      <Moment at={expires} />
    </Group>
  );
}

/** The actions of a key. */
export function KeyActions(zone: string) {
  return function Cell(key: Key) {
    return key.revoked_at === null ? <Actions zone={zone} value={key} /> : null;
  };
}

function Actions({ zone, value }: { zone: string; value: Key }) {
  const [doing, setDoing] = useState<"editing" | "revoking">();
  const change = useChangeKey(zone, value.public_id);
  const revoke = useRevokeKey(zone, value.public_id);
  const close = () => setDoing(undefined);
  return (
    <Group gap={6} wrap="nowrap" justify="end">
      <May role="admin">
        <Button size="compact-sm" variant="default" onClick={() => setDoing("editing")}>
          Edit
        </Button>
      </May>
      <May>
        <Button size="compact-sm" variant="light" color="red" onClick={() => setDoing("revoking")}>
          Revoke
        </Button>
      </May>
      <Side of={doing === "editing" ? value : undefined} title={() => `Key ${value.public_id}`} size="md" onClose={close}>
        {() => (
          <KeyForm
            value={value}
            error={change.error}
            busy={change.isPending}
            action="Save"
            onSubmit={(body) => change.mutate(body, { onSuccess: close })}
          />
        )}
      </Side>
      <Confirm
        opened={doing === "revoking"}
        title={`Revoke the key ${value.public_id}?`}
        about="Requests with this key are refused within one second. This is permanent."
        action="Revoke"
        busy={revoke.isPending}
        error={revoke.error}
        onConfirm={() => revoke.mutate(undefined, { onSuccess: close })}
        onClose={close}
      />
    </Group>
  );
}
