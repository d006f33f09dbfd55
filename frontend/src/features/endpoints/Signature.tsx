import { Select, Text } from "@mantine/core";
import { useState } from "react";

import { errorAt } from "../../api/problem";
import { Block } from "../../parts/Block";
import { Facts } from "../../parts/Facts";
import { SIGNATURES } from "./endpoints";
import { type Editing, type Found, Setting, SettingForm } from "./Setting";

/** How callbacks are signed, with the public key. */
export function Signature(endpoint: Found) {
  const { signature, public_key: key } = endpoint.found.value;
  return (
    <Setting {...endpoint} title="Signature" about="With it, receivers verify that the hub sent a callback (Standard Webhooks)." form={SignatureForm}>
      <Facts
        facts={[
          ["Signature", SIGNATURES.find((one) => one.value === signature)?.label ?? signature],
          ["Public key", key === null ? "none: generated when v1a is first used" : <Block key="key" text={key} label="Public key" copy="Copy the public key" wraps />],
        ]}
      />
    </Setting>
  );
}

function SignatureForm({ endpoint, ...form }: Editing) {
  const [signature, setSignature] = useState(endpoint.signature);
  return (
    <SettingForm {...form} fields={["signature"]} ready={signature !== endpoint.signature} body={() => ({ signature })}>
      <Select
        label="Signature"
        data={[...SIGNATURES]}
        value={signature}
        allowDeselect={false}
        onChange={(chosen) => setSignature(chosen ?? signature)}
        error={errorAt(form.change.error, "signature")}
      />
        <Text size="sm" c="dimmed">
          To go from v1 to v1a without a break: choose both, give receivers the public key, then choose v1a.
        </Text>
    </SettingForm>
  );
}
