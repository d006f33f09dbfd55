import { Box, Button, Group, Text } from "@mantine/core";
import { IconRotate2 } from "@tabler/icons-react";
import { useState } from "react";

import type { Loaded } from "../../api/client";
import { Card } from "../../parts/Card";
import { CopyIcon } from "../../parts/CopyIcon";
import type { Column } from "../../parts/DataTable";
import { Empty } from "../../parts/Empty";
import { Listed } from "../../parts/Listed";
import { May } from "../../parts/May";
import { Moment } from "../../parts/Moment";
import { Removal } from "../../parts/Removal";
import { type Secret, SecretOnce } from "../../parts/SecretOnce";
import { Side } from "../../parts/Side";
import { State } from "../../parts/State";
import { type Endpoint, secretOf } from "./endpoints";
import { RotateForm } from "./RotateForm";
import { type SigningSecret, useRevokeSecret, useSecrets } from "./secrets";

const COLUMNS: Column<SigningSecret>[] = [
  { title: "Secret", cell: ({ id, signature }) => `${signature === "v1" ? "Secret" : "Key pair"} ${id} (${signature})` },
  { title: "Text", cell: (secret) => <Shown secret={secret} /> },
  { title: "Created", cell: ({ created_at: at }) => <Moment at={at} /> },
  { title: "State", cell: (secret) => <Validity secret={secret} /> },
];

interface Props {
  zone: string;
  found: Loaded<Endpoint>;
}

/** The valid secrets of an endpoint, with rotation. */
export function Secrets({ zone, found }: Props) {
  const { id } = found.value;
  const [rotating, setRotating] = useState<"v1" | "v1a">();
  const [made, setMade] = useState<Secret>();
  const columns = [...COLUMNS, { title: "Actions", right: true, cell: RevokeCell(zone, id) }];
  const close = () => setRotating(undefined);
  return (
    <Card title="Secrets" aside={<RotateButtons onRotate={setRotating} />}>
      <Box px="md" pb="md">
        <Text size="sm" c="dimmed" mb="md" maw={760}>
          During the overlap of a rotation callbacks are signed by the new secret and by those before it, so that receivers can switch to the new one.
        </Text>
        <Listed
          list={useSecrets(zone, id)}
          label="Secrets"
          columns={columns}
          keyOf={(secret) => String(secret.id)}
          minWidth={700}
          empty={<Empty title="No secrets" about="Rotate the secret to create a new one." />}
        />
      </Box>
      <Side of={rotating} title={titleOf} size="md" onClose={close}>
        {(signature) => (
          <RotateForm
            key={signature}
            zone={zone}
            found={found}
            signature={signature}
            onRotated={(text) => {
              close();
              if (text !== null) setMade(secretOf(text));
            }}
          />
        )}
      </Side>
      <SecretOnce secret={made} onClose={() => setMade(undefined)} />
    </Card>
  );
}

function titleOf(signature: "v1" | "v1a"): string {
  return signature === "v1" ? "Rotate the secret" : "Rotate the key pair";
}

function RotateButtons({ onRotate }: { onRotate: (signature: "v1" | "v1a") => void }) {
  return (
    <May>
      <Group gap="xs">
        {(["v1", "v1a"] as const).map((signature) => (
          <Button key={signature} size="compact-sm" variant="default" leftSection={<IconRotate2 size={14} />} onClick={() => onRotate(signature)}>
            {titleOf(signature)}
          </Button>
        ))}
      </Group>
    </May>
  );
}

function Shown({ secret: { public_key: key } }: { secret: SigningSecret }) {
  if (key === null) return <Text span size="sm" c="dimmed">shown only when it was created</Text>;
  return (
    <Group gap={4} wrap="nowrap">
      <Text span size="sm" className="mono" truncate maw={190} title={key}>
        {key}
      </Text>
      <CopyIcon text={key} label="Copy the public key" />
    </Group>
  );
}

function Validity({ secret: { expires_at: expires } }: { secret: SigningSecret }) {
  if (expires === null) return <State state="ok" label="current" />;
  return (
    <Group gap={6} wrap="nowrap">
      <State state="waiting" label="signs until" />
      <Moment at={expires} />
    </Group>
  );
}

/** The action of a previous secret; the current one is only rotated. */
function RevokeCell(zone: string, endpoint: number) {
  return function Cell(secret: SigningSecret) {
    return secret.expires_at === null ? null : <Revoke zone={zone} endpoint={endpoint} secret={secret} />;
  };
}

function Revoke({ zone, endpoint, secret: { id } }: { zone: string; endpoint: number; secret: SigningSecret }) {
  const revoke = useRevokeSecret(zone, endpoint, id);
  return (
    <Removal
      label={`Revoke secret ${id}`}
      title={`Revoke secret ${id}?`}
      about="Callbacks are no longer signed by it. Receivers that know only this secret refuse them."
      action="Revoke"
      removal={revoke}
      onConfirm={(close) => revoke.mutate(undefined, { onSuccess: close })}
    />
  );
}
