import { Button, Group, MultiSelect, SimpleGrid, Stack, TextInput } from "@mantine/core";
import { type SubmitEvent, useState } from "react";

import { errorAt, Problem } from "../api/problem";
import { ClientInput } from "../clients/ClientInput";
import { attributesOf, complaint, type Pair } from "../pairs/pairs";
import { PairsInput } from "../pairs/PairsInput";
import { ProblemAlert } from "../parts/ProblemAlert";
import { CallbackInput, type CallbackChoice } from "./CallbackInput";
import type { NewRegistration } from "./registrations";

const FIELDS = ["client", "streams", "domain", "type", "attributes", "endpoint", "callback"];

interface Props {
  zone: string;
  clients: string[];
  streams: string[];
  error: Error | null;
  busy: boolean;
  onSubmit: (body: NewRegistration) => void;
}

/** The hub checks; what it refuses is shown at the field that its `position` names. */
export function RegistrationForm({ zone, clients, streams, error, busy, onSubmit }: Props) {
  const [client, setClient] = useState(clients[0] ?? "");
  const [chosen, setChosen] = useState<string[]>([]);
  const [domain, setDomain] = useState("");
  const [type, setType] = useState("");
  const [pairs, setPairs] = useState<Pair[]>([]);
  const [callback, setCallback] = useState<CallbackChoice>({ kind: "none" });
  const [checked, setChecked] = useState(false);
  const elsewhere = error !== null && !FIELDS.some((field) => errorAt(error, field) !== undefined);

  const pairError = (pair: Pair) => {
    if (checked && complaint(pair) !== undefined) return complaint(pair);
    return pair.name !== "" && error instanceof Problem && error.field === `attributes.${pair.name}` ? error.message : undefined;
  };
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    setChecked(true);
    if (pairs.some((pair) => complaint(pair) !== undefined)) return;
    onSubmit({
      client,
      streams: chosen,
      domain: domain || null,
      type: type || null,
      attributes: attributesOf(pairs),
      ...(callback.kind === "endpoint" ? { endpoint: callback.endpoint } : {}),
      ...(callback.kind === "url" ? { callback: callback.url } : {}),
    });
  };

  return (
    <form onSubmit={submit} noValidate>
      <Stack gap="md">
        {elsewhere && <ProblemAlert error={error} />}
        <ClientInput names={clients} value={client} onChange={setClient} error={errorAt(error, "client")} />
        <MultiSelect
          label="Streams"
          description="Events of these streams are looked at."
          data={streams}
          value={chosen}
          onChange={setChosen}
          searchable
          error={errorAt(error, "streams")}
        />
        <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
          <TextInput
            label="Domain"
            placeholder="any"
            value={domain}
            onChange={(event) => setDomain(event.currentTarget.value)}
            error={errorAt(error, "domain")}
          />
          <TextInput
            label="Type"
            placeholder="any"
            value={type}
            onChange={(event) => setType(event.currentTarget.value)}
            error={errorAt(error, "type")}
          />
        </SimpleGrid>
        <PairsInput pairs={pairs} onChange={setPairs} errorOf={pairError} />
        <CallbackInput
          zone={zone}
          client={client}
          choice={callback}
          onChange={setCallback}
          error={errorAt(error, "callback") ?? errorAt(error, "endpoint")}
        />
        <Group justify="end">
          <Button type="submit" loading={busy}>
            Register
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
