import { Button, TextInput } from "@mantine/core";
import { IconKey } from "@tabler/icons-react";
import { useState } from "react";

import { errorAt } from "../../api/problem";
import { AmountInput, TIMES } from "../../parts/AmountInput";
import { Form } from "../../parts/Form";
import type { Secret } from "../../parts/SecretOnce";
import { Side } from "../../parts/Side";
import { useReplaceSecret } from "./sources";

const OVERLAP_S = 86_400;

interface Props {
  zone: string;
  id: number;
  onMade: (secret: Secret) => void;
}

/** The button and the form that replace the secret of a source. */
export function ReplaceSecret({ zone, id, onMade }: Props) {
  const [opened, setOpened] = useState<true>();
  return (
    <>
      <Button variant="default" leftSection={<IconKey size={16} />} onClick={() => setOpened(true)}>
        Replace the secret
      </Button>
      <Side of={opened} title={() => "Replace the secret"} size="md" onClose={() => setOpened(undefined)}>
        {() => (
          <SecretForm
            zone={zone}
            id={id}
            onReplaced={(text) => {
              setOpened(undefined);
              if (text !== null) onMade({ name: "secret of the source", about: "Enter it at the provider.", text });
            }}
          />
        )}
      </Side>
    </>
  );
}

function SecretForm({ zone, id, onReplaced }: { zone: string; id: number; onReplaced: (text: string | null) => void }) {
  const replace = useReplaceSecret(zone, id);
  const [secret, setSecret] = useState("");
  const [overlap, setOverlap] = useState<number | null>(OVERLAP_S);
  const submit = () => {
    const body = { overlap_s: overlap ?? 0, ...(secret === "" ? {} : { secret }) };
    replace.mutate(body, { onSuccess: (made) => onReplaced(made.secret) });
  };
  return (
    <Form fields={["secret", "overlap_s"]} error={replace.error} busy={replace.isPending} action="Replace" onSubmit={submit}>
      <TextInput
        label="Secret"
        description="As the provider shows it. Empty: the hub generates one."
        autoComplete="off"
        spellCheck={false}
        value={secret}
        onChange={(change) => setSecret(change.currentTarget.value)}
        error={errorAt(replace.error, "secret")}
      />
      <AmountInput
        label="Overlap"
        description="For how long the previous secret verifies too."
        units={TIMES}
        value={overlap}
        onChange={setOverlap}
        error={errorAt(replace.error, "overlap_s")}
      />
    </Form>
  );
}
