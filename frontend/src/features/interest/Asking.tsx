import { SimpleGrid, Stack, Text, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";

import { errorAt } from "../../api/problem";
import { attributesOf, complaint, type Pair } from "../../parts/pairs/pairs";
import { PairsInput } from "../../parts/pairs/PairsInput";
import { Card } from "../../parts/Card";
import { Form } from "../../parts/Form";
import { State } from "../../parts/State";
import { interestIn, type Interest } from "./closure";

const ANSWERS: Record<Interest["interested"], { tone: string; word: string; about: string }> = {
  yes: { tone: "ok", word: "yes", about: "Somebody wants every event like that." },
  maybe: { tone: "low", word: "maybe", about: "Somebody may want it, depending on what is not given here." },
  no: { tone: "no", word: "no", about: "Nobody wants any event like that." },
};

interface Props {
  zone: string;
  stream: string;
  audience: readonly string[];
}

/** Would anybody want an event like this? */
export function Asking({ zone, stream, audience }: Props) {
  const [domain, setDomain] = useState("");
  const [type, setType] = useState("");
  const [pairs, setPairs] = useState<Pair[]>([]);
  const [checked, setChecked] = useState(false);
  const ask = useMutation({
    mutationFn: () => interestIn(zone, stream, { domain: domain || undefined, type: type || undefined, attributes: attributesOf(pairs) }, audience),
  });
  const change = (apply: () => void) => {
    apply();
    ask.reset(); // the answer was to another question
  };
  return (
    <Card title="Would anybody want it?">
      <Stack gap="sm" p="md" pt={0}>
        <Text size="sm" c="dimmed">
          Say what you know of an event; the rest may be anything.
        </Text>
        <Form
          fields={["shape"]}
          error={ask.error}
          busy={ask.isPending}
          action="Ask"
          onSubmit={() => {
            setChecked(true);
            if (pairs.every((pair) => complaint(pair) === undefined)) ask.mutate();
          }}
        >
          <SimpleGrid cols={2} spacing="sm">
            <TextInput label="Domain" placeholder="any" value={domain} onChange={(event) => change(() => setDomain(event.currentTarget.value))} error={errorAt(ask.error, "shape.domain")} />
            <TextInput label="Type" placeholder="any" value={type} onChange={(event) => change(() => setType(event.currentTarget.value))} error={errorAt(ask.error, "shape.type")} />
          </SimpleGrid>
          <PairsInput pairs={pairs} onChange={(next) => change(() => setPairs(next))} errorOf={checked ? complaint : undefined} />
        </Form>
        <div role="status" aria-label="Answer">
          {ask.data !== undefined && <Answer interest={ask.data} />}
        </div>
      </Stack>
    </Card>
  );
}

function Answer({ interest: { interested, quench } }: { interest: Interest }) {
  const { tone, word, about } = ANSWERS[interested];
  return (
    <Text size="sm" component="div">
      <State state={tone} label={word} /> {about} {interested === "maybe" && !quench && OPEN}
    </Text>
  );
}

const OPEN = "Who listens is not counted on a stream whose events may not be left out.";
