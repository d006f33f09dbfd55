import { Button, Select, SimpleGrid, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { IconMailForward } from "@tabler/icons-react";
import { useState } from "react";

import { itemsOf } from "../../api/pages";
import { parseExactly } from "../../api/exact";
import { errorAt } from "../../api/problem";
import type { Endpoint } from "../endpoints/endpoints";
import { useTypes } from "../types/types";
import { Form } from "../../parts/Form";
import { May } from "../../parts/May";
import { Side } from "../../parts/Side";
import { type ExampleRequest, useSendExample } from "./deliveries";
import { DeliveryDetail } from "./DeliveryDetail";

interface Props {
  zone: string;
  endpoint: Endpoint;
}

/** The button that sends an example event of a type to an endpoint, and shows its delivery. */
export function SendExample({ zone, endpoint }: Props) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <May>
        <Button variant="default" leftSection={<IconMailForward size={16} />} onClick={() => setOpen(true)}>
          Send example
        </Button>
      </May>
      <Side of={open || undefined} title={() => `Send an example to endpoint ${endpoint.id}`} size="xl" onClose={() => setOpen(false)}>
        {() => <Sending zone={zone} endpoint={endpoint} />}
      </Side>
    </>
  );
}

function Sending({ zone, endpoint }: Props) {
  const send = useSendExample(zone, endpoint.id);
  if (send.data !== undefined) {
    return (
      <Stack gap="md">
        <Text size="sm" role="status">
          {endpoint.enabled ? "The example was sent. Its attempts appear below." : "The example is pending until the endpoint is enabled."}
        </Text>
        <DeliveryDetail zone={zone} id={send.data.id} />
        <div>
          <Button variant="default" onClick={() => send.reset()}>
            Send another
          </Button>
        </div>
      </Stack>
    );
  }
  return <ExampleForm zone={zone} send={send} />;
}

function ExampleForm({ zone, send }: { zone: string; send: ReturnType<typeof useSendExample> }) {
  const types = itemsOf(useTypes(zone).data);
  const [name, setName] = useState({ domain: "", type: "" });
  const [text, setText] = useState("");
  const [malformed, setMalformed] = useState(false);
  const { error } = send;
  const submit = () => {
    const attributes = attributesIn(text);
    setMalformed(attributes === null);
    if (attributes !== null) send.mutate({ ...name, ...(attributes === undefined ? {} : { attributes }) });
  };
  return (
    <Form
      fields={["domain", "type", "attributes"]}
      error={error}
      busy={send.isPending}
      action="Send"
      ready={name.domain !== "" && name.type !== ""}
      onSubmit={submit}
    >
      <Text size="sm" c="dimmed">
        A worker posts the event, signed, with the headers and checks of any callback. No other endpoint gets it.
      </Text>
      {types.length > 0 && (
        <Select
          label="Declared type"
          placeholder="Choose a type, or name one below"
          data={types.map((one, index) => ({ value: String(index), label: `${one.domain} ${one.type}` }))}
          value={indexOf(types, name)}
          onChange={(chosen) => {
            const one = chosen === null ? undefined : types[Number(chosen)];
            if (one !== undefined) setName({ domain: one.domain, type: one.type });
          }}
          searchable
        />
      )}
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        {(["domain", "type"] as const).map((part) => (
          <TextInput
            key={part}
            label={part === "domain" ? "Domain" : "Type"}
            placeholder={part === "domain" ? "shop" : "order.placed"}
            value={name[part]}
            onChange={({ currentTarget: { value } }) => setName((latest) => ({ ...latest, [part]: value }))}
            error={errorAt(error, part)}
          />
        ))}
      </SimpleGrid>
      <Textarea
        label="Attributes"
        description="A JSON object. Empty: made from the schema of the type, if it is declared."
        placeholder='{"total": 12}'
        autosize
        minRows={3}
        maxRows={12}
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
        spellCheck={false}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        error={malformed ? "Not a JSON object." : errorAt(error, "attributes")}
      />
    </Form>
  );
}

function indexOf(types: readonly ExampleRequest[], { domain, type }: ExampleRequest): string | null {
  const index = types.findIndex((one) => one.domain === domain && one.type === type);
  return index < 0 ? null : String(index);
}

/** The attributes in a text; undefined if it is empty, null if it is not a JSON object. */
function attributesIn(text: string): ExampleRequest["attributes"] | null {
  if (text.trim() === "") return undefined;
  try {
    const found = parseExactly(text);
    return typeof found === "object" && found !== null && !Array.isArray(found) ? (found as ExampleRequest["attributes"]) : null;
  } catch {
    return null;
  }
}
