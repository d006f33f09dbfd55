import { ActionIcon, Button, Group, Input, NativeSelect, Stack, TagsInput, TextInput } from "@mantine/core";
import { IconPlus, IconX } from "@tabler/icons-react";
import { type ReactNode, useState } from "react";

import { errorAt } from "../../api/problem";
import { Form } from "../../parts/Form";
import type { Secret } from "../../parts/SecretOnce";
import { rfc3339 } from "../../parts/time";
import { type Grant, type Key, useCreateKey } from "./clients";

const ACTIONS = ["emit", "listen", "manage"];
const NEW_GRANT: Grant = { action: "listen", streams: "" }; // the granting user enters the streams

interface Props {
  value?: Key; // to change it
  error: unknown;
  busy: boolean;
  action: string;
  onSubmit: (body: { label: string; grants: Grant[]; allowed_addresses: string[] | null }) => void;
  children?: ReactNode;
}

/** A key's label, what it may do, and from where. */
export function KeyForm({ value, error, children, onSubmit, ...form }: Props) {
  const [label, setLabel] = useState(value?.label ?? "");
  const [grants, setGrants] = useState<Grant[]>(value?.grants ?? [NEW_GRANT]);
  const [addresses, setAddresses] = useState(value?.allowed_addresses ?? []);
  const from = addresses.length === 0 ? null : addresses; // null: everywhere
  return (
    <Form
      {...form}
      error={error}
      fields={["label", "grants", "allowed_addresses", "expires_at"]}
      onSubmit={() => onSubmit({ label, grants, allowed_addresses: from })}
    >
      <TextInput
        label="Label"
        description="Purpose of the key."
        value={label}
        onChange={(event) => setLabel(event.currentTarget.value)}
        error={errorAt(error, "label")}
      />
      <Grants grants={grants} onChange={setGrants} error={errorAt(error, "grants")} />
      <TagsInput
        label="Allowed addresses"
        description="IP addresses and networks that the key may be used from; without one, everywhere. Enter adds one."
        placeholder={addresses.length === 0 ? "10.1.0.0/16" : ""}
        value={addresses}
        onChange={setAddresses}
        error={errorAt(error, "allowed_addresses")}
      />
      {children}
    </Form>
  );
}

export function NewKeyForm({ zone, client, onMade }: { zone: string; client: string; onMade: (secret: Secret) => void }) {
  const create = useCreateKey(zone, client);
  const [expires, setExpires] = useState("");
  return (
    <KeyForm
      error={create.error}
      busy={create.isPending}
      action="Create"
      onSubmit={(body) =>
        create.mutate(
          { ...body, expires_at: expires === "" ? null : rfc3339(expires) },
          { onSuccess: ({ key }) => onMade({ name: "key", about: `${client} sends it as its bearer credential.`, text: key }) },
        )
      }
    >
      <TextInput
        type="datetime-local"
        label="Expires"
        description="Empty: never."
        value={expires}
        onChange={(event) => setExpires(event.currentTarget.value)}
        error={errorAt(create.error, "expires_at")}
      />
    </KeyForm>
  );
}

interface GrantsProps {
  grants: Grant[];
  onChange: (grants: Grant[]) => void;
  error: string | undefined;
}

function Grants({ grants, onChange, error }: GrantsProps) {
  const change = (at: number, part: Partial<Grant>) =>
    onChange(grants.map((grant, index) => (index === at ? { ...grant, ...part } : grant)));
  return (
    <Stack gap={6} role="group" aria-label="Grants">
      <Input.Label component="div">May</Input.Label>
      <Input.Description>What is not granted is denied. In names of streams, * stands for any characters.</Input.Description>
      {grants.map((grant, index) => (
        // a grant has no identity except its index
        <Group key={index} gap={6} wrap="nowrap">
          <NativeSelect
            aria-label={`Action of grant ${index + 1}`}
            data={ACTIONS}
            value={grant.action}
            onChange={(event) => change(index, { action: event.currentTarget.value as Grant["action"] })}
          />
          <TextInput
            aria-label={`Streams of grant ${index + 1}`}
            placeholder="orders.*"
            flex={1}
            value={grant.streams}
            onChange={(event) => change(index, { streams: event.currentTarget.value })}
          />
          <ActionIcon
            variant="subtle"
            color="gray"
            size={36}
            aria-label={`Remove grant ${index + 1}`}
            onClick={() => onChange(grants.filter((_, at) => at !== index))}
          >
            <IconX size={16} />
          </ActionIcon>
        </Group>
      ))}
      {error !== undefined && <Input.Error>{error}</Input.Error>}
      <div>
        <Button variant="default" size="compact-sm" leftSection={<IconPlus size={14} />} onClick={() => onChange([...grants, NEW_GRANT])}>
          Add a grant
        </Button>
      </div>
    </Stack>
  );
}
