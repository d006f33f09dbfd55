import { MultiSelect } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";

import { errorAt, Problem } from "../api/problem";
import { Form } from "../parts/Form";
import { useStreamNames } from "../streams/streams";
import { CallbackInput, type CallbackChoice } from "./CallbackInput";
import { type AskedFilter, askedOf, draftOf, languages } from "./filter";
import { FilterInput } from "./FilterInput";
import type { Registration } from "./registrations";

const FIELDS = ["client", "streams", "language", "filter", "domain", "type", "application", "attributes", "endpoint", "callback"];

export interface Asked extends AskedFilter {
  streams: string[];
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
  const [draft, setDraft] = useState(() => draftOf(registration));
  const [fault, setFault] = useState<Problem>();
  const [callback, setCallback] = useState<CallbackChoice>(choiceOf(registration));
  const [checked, setChecked] = useState(false);

  const known = useQuery(languages).data;
  const shown = fault ?? error;

  const submit = () => {
    setChecked(true);
    setFault(undefined);
    try {
      const asked = askedOf(draft, known?.find(({ name }) => name === draft.language)?.kind === "json");
      if (asked !== undefined) onSubmit({ streams: chosen, ...asked }, callback);
    } catch (wrong) {
      const detail = wrong instanceof SyntaxError ? `This is not JSON: ${wrong.message}` : String(wrong);
      setFault(new Problem(400, { code: "malformed_json", detail, position: { field: "filter" } }));
    }
  };

  return (
    <Form {...form} error={shown} fields={FIELDS} onSubmit={submit}>
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
      <FilterInput draft={draft} onChange={setDraft} checked={checked} error={shown} />
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
