import { Box, Button, Group, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconPencil } from "@tabler/icons-react";
import type { ComponentType, ReactNode } from "react";

import type { Loaded } from "../../api/client";
import { Card } from "../../parts/Card";
import { Form } from "../../parts/Form";
import { May } from "../../parts/May";
import { Undisturbed } from "../../parts/Undisturbed";
import { type Endpoint, type EndpointChange, useChangeEndpoint } from "./endpoints";

/** An endpoint as it was loaded, and how to load it again. */
export interface Found {
  zone: string;
  found: Loaded<Endpoint>;
  reload: () => Promise<{ data: Loaded<Endpoint> | undefined }>;
}

/** What the form of a card needs to save its fields. */
export interface Editing {
  endpoint: Endpoint;
  change: ReturnType<typeof useChangeEndpoint>;
  onClose: () => void;
  onReload: () => void;
}

interface Props extends Found {
  title: string;
  about: ReactNode;
  action?: string; // what opens the form
  aside?: ReactNode; // further actions
  children: ReactNode; // the fields as they are
  form: ComponentType<Editing>;
}

/** A card with some fields of an endpoint, and with their form while they are edited. */
export function Setting({ title, about, action = "Edit", aside, children, form, ...endpoint }: Props) {
  const [editing, { open, close }] = useDisclosure(false);
  const actions = (
    <May>
      <Group gap="xs">
        {aside}
        <Button size="compact-sm" variant="default" leftSection={<IconPencil size={14} />} aria-label={`${action}: ${title}`} onClick={open}>
          {action}
        </Button>
      </Group>
    </May>
  );
  return (
    <Card title={title} aside={editing ? undefined : actions}>
      <Box px="md" pb="md">
        <Text size="sm" c="dimmed" mb="md" maw={760} component="div">
          {about}
        </Text>
        {editing ? <EditingCard {...endpoint} form={form} onClose={close} /> : children}
      </Box>
    </Card>
  );
}

function EditingCard({ zone, found, reload, form: Fields, onClose }: Found & Pick<Props, "form"> & { onClose: () => void }) {
  return (
    <Undisturbed found={found} reload={reload}>
      {(kept, renew) => <Changing zone={zone} found={kept} form={Fields} onClose={onClose} onReload={renew} />}
    </Undisturbed>
  );
}

interface ChangingProps extends Pick<Props, "form"> {
  zone: string;
  found: Loaded<Endpoint>;
  onClose: () => void;
  onReload: () => void;
}

function Changing({ zone, found: { value, etag }, form: Fields, ...closing }: ChangingProps) {
  const change = useChangeEndpoint(zone, value.id, etag);
  return <Fields endpoint={value} change={change} {...closing} />;
}

interface FormProps extends Omit<Editing, "endpoint"> {
  fields: readonly string[]; // that show their own errors
  ready?: boolean;
  body: () => EndpointChange;
  children: ReactNode;
}

/** The form of a card: its fields, with buttons to save and to cancel. */
export function SettingForm({ fields, ready = true, body, change, onClose, onReload, children }: FormProps) {
  return (
    <Box maw={720}>
      <Form
        fields={fields}
        error={change.error}
        busy={change.isPending}
        action="Save"
        ready={ready}
        onSubmit={() => change.mutate(body(), { onSuccess: onClose })}
        onReload={onReload}
        aside={
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
        }
      >
        {children}
      </Form>
    </Box>
  );
}
