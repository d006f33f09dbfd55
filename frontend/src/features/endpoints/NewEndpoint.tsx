import { Select, Stack, TextInput } from "@mantine/core";
import { useState } from "react";

import { errorAt } from "../../api/problem";
import { Form } from "../../parts/Form";
import type { Secret } from "../../parts/SecretOnce";
import { ClientInput } from "../clients/ClientInput";
import { EndpointFields } from "./EndpointFields";
import { bodyOf, FIELD_NAMES, NEW_FIELDS } from "./fields";
import { HANDSHAKES, type NewEndpoint as NewBody, secretOf, SIGNATURES, useCreateEndpoint } from "./endpoints";
import { NewSink } from "./NewSink";
import { isSink, type Kind, KINDS } from "./sinks";

interface Props {
  zone: string;
  onMade: (secret?: Secret) => void;
}

/** The form of a new endpoint. Its other settings have defaults; its page changes them. */
export function NewEndpoint({ zone, onMade }: Props) {
  const [kind, setKind] = useState<Kind>("https");
  return (
    <Stack gap="md">
      <Select
        label="Kind"
        description="Events are posted to a URL, or stored in a system of the client."
        data={KINDS}
        value={kind}
        allowDeselect={false}
        onChange={(chosen) => setKind(chosen ?? "https")}
      />
      {isSink(kind) ? <NewSink key={kind} zone={zone} kind={kind} onMade={() => onMade()} /> : <NewPosted zone={zone} onMade={onMade} />}
    </Stack>
  );
}

function NewPosted({ zone, onMade }: Props) {
  const create = useCreateEndpoint(zone);
  const [client, setClient] = useState("");
  const [fields, setFields] = useState(NEW_FIELDS);
  const [signature, setSignature] = useState<NewBody["signature"]>("v1");
  const [handshake, setHandshake] = useState<NewBody["handshake"]>("none");
  const [secret, setSecret] = useState("");
  const { error } = create;
  const body = { client, ...bodyOf(fields), signature, handshake, ...(secret === "" ? {} : { secret }) };
  return (
    <Form
      fields={["client", "signature", "handshake", "secret", ...FIELD_NAMES]}
      error={error}
      busy={create.isPending}
      action="Create"
      ready={client !== ""}
      onSubmit={() => create.mutate(body, { onSuccess: ({ secret: made }) => onMade(made === null ? undefined : secretOf(made)) })}
    >
      <ClientInput zone={zone} value={client} onChange={setClient} error={errorAt(error, "client")} />
      <EndpointFields fields={fields} error={error} onChange={(change) => setFields((latest) => ({ ...latest, ...change }))} />
      <Select
        label="Signature"
        description="How receivers verify that the hub sent a callback."
        data={[...SIGNATURES]}
        value={signature}
        allowDeselect={false}
        onChange={(chosen) => setSignature(chosen ?? "v1")}
        error={errorAt(error, "signature")}
      />
      <Select
        label="Handshake"
        description="How the receiver must agree before the first callback."
        data={[...HANDSHAKES]}
        value={handshake}
        allowDeselect={false}
        onChange={(chosen) => setHandshake(chosen ?? "none")}
        error={errorAt(error, "handshake")}
      />
      <TextInput
        label="Own secret"
        description="whsec_ and base64 of 24 to 64 bytes. Empty: the hub generates one."
        placeholder="whsec_…"
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
        autoComplete="off"
        spellCheck={false}
        value={secret}
        onChange={(event) => setSecret(event.currentTarget.value)}
        error={errorAt(error, "secret")}
      />
    </Form>
  );
}
