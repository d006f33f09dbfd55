import { Select, Text, TextInput } from "@mantine/core";
import { useState } from "react";

import type { Loaded } from "../../api/client";
import { errorAt } from "../../api/problem";
import { Form } from "../../parts/Form";
import type { Endpoint } from "./endpoints";
import { OVERLAP_DEFAULT, OVERLAPS, useRotateSecret } from "./secrets";

interface Props {
  zone: string;
  found: Loaded<Endpoint>;
  signature: "v1" | "v1a";
  onRotated: (secret: string | null) => void; // null: of a key pair
}

/** The form of a rotation. */
export function RotateForm({ zone, found: { value, etag }, signature, onRotated }: Props) {
  const rotate = useRotateSecret(zone, value.id, etag);
  const [overlap, setOverlap] = useState<string>(OVERLAP_DEFAULT);
  const [secret, setSecret] = useState("");
  const body = { signature, overlap_s: Number(overlap), ...(secret === "" ? {} : { secret }) };
  return (
    <Form
      fields={["overlap_s", "secret"]}
      error={rotate.error}
      busy={rotate.isPending}
      action="Rotate"
      onSubmit={() => rotate.mutate(body, { onSuccess: (made) => onRotated(made.secret) })}
      onReload={rotate.reset}
    >
      <Text size="sm" c="dimmed">
        {signature === "v1"
          ? "Callbacks are signed by a new secret from now on. It is shown once."
          : "Callbacks are signed by a new key pair from now on. Its public key is shown in the list."}
      </Text>
      <Select
        label="Overlap"
        description="For how long the previous secret signs too."
        data={[...OVERLAPS]}
        value={overlap}
        allowDeselect={false}
        onChange={(chosen) => setOverlap(chosen ?? OVERLAP_DEFAULT)}
        error={errorAt(rotate.error, "overlap_s")}
      />
      {signature === "v1" && (
        <TextInput
          label="Own secret"
          description="whsec_ and base64 of 24 to 64 bytes. Empty: the hub generates one."
          placeholder="whsec_…"
          styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
          autoComplete="off"
          spellCheck={false}
          value={secret}
          onChange={(event) => setSecret(event.currentTarget.value)}
          error={errorAt(rotate.error, "secret")}
        />
      )}
    </Form>
  );
}
