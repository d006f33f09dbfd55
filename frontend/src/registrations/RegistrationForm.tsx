import { MultiSelect, SimpleGrid, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";

import { errorAt, Problem } from "../api/problem";
import { attributesOf, complaint, type Pair, pairsOf } from "../pairs/pairs";
import { PairsInput } from "../pairs/PairsInput";
import { Form } from "../parts/Form";
import { useStreamNames } from "../streams/streams";
import { CallbackInput, type CallbackChoice } from "./CallbackInput";
import type { Registration } from "./registrations";

const FIELDS = ["client", "streams", "domain", "type", "application", "attributes", "endpoint", "callback"];

export interface Asked {
  streams: string[];
  domain: string | null;
  type: string | null;
  application: string | null;
  attributes: Record<string, unknown>;
}

interface Props {
  zone: string;
  client: string;
  registration?: Registration; // to change it
  error: unknown;
  busy: boolean;
  action: string;
  onSubmit: (asked: Asked, callback: CallbackChoice) => void;
  onReload?: () => void;
  children?: ReactNode; // whose it is, of a new one
  aside?: ReactNode;
}

/** What a registration asks for, and where the hub calls back. */
export function RegistrationForm({ zone, client, registration, error, onSubmit, children, ...form }: Props) {
  const streams = useStreamNames(zone).data ?? [];
  const [chosen, setChosen] = useState<string[]>(registration?.streams ?? []);
  const [domain, setDomain] = useState(registration?.domain ?? "");
  const [type, setType] = useState(registration?.type ?? "");
  const [application, setApplication] = useState(registration?.application ?? "");
  const [pairs, setPairs] = useState<Pair[]>(pairsOf(registration?.attributes ?? {}));
  const [callback, setCallback] = useState<CallbackChoice>(choiceOf(registration));
  const [checked, setChecked] = useState(false);

  const pairError = (pair: Pair) => {
    if (checked && complaint(pair) !== undefined) return complaint(pair);
    return pair.name !== "" && error instanceof Problem && error.field === `attributes.${pair.name}` ? error.message : undefined;
  };
  const submit = () => {
    setChecked(true);
    if (pairs.some((pair) => complaint(pair) !== undefined)) return;
    const asked = { domain: domain || null, type: type || null, application: application || null };
    onSubmit({ streams: chosen, ...asked, attributes: attributesOf(pairs) }, callback);
  };

  return (
    <Form {...form} error={error} fields={FIELDS} onSubmit={submit}>
      {children}
      <MultiSelect
        label="Streams"
        description="Events of these streams are looked at."
        data={[...new Set([...streams, ...chosen])]}
        value={chosen}
        onChange={setChosen}
        searchable
        error={errorAt(error, "streams")}
      />
      <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="sm">
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
        <TextInput
          label="Application"
          placeholder="any"
          value={application}
          onChange={(event) => setApplication(event.currentTarget.value)}
          error={errorAt(error, "application")}
        />
      </SimpleGrid>
      <PairsInput pairs={pairs} onChange={setPairs} errorOf={pairError} />
      <CallbackInput
        zone={zone}
        client={client}
        choice={callback}
        urls={registration === undefined}
        onChange={setCallback}
        error={errorAt(error, "callback") ?? errorAt(error, "endpoint")}
      />
    </Form>
  );
}

function choiceOf(registration: Registration | undefined): CallbackChoice {
  if (registration === undefined || registration.endpoint === null) return { kind: "none" };
  return { kind: "endpoint", endpoint: registration.endpoint };
}
