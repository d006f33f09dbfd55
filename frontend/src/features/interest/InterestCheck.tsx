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
  yes: { tone: "ok", word: "yes", about: "At least one registration matches every such event." },
  maybe: { tone: "low", word: "maybe", about: "A registration may match, depending on fields not given here." },
  no: { tone: "no", word: "no", about: "No registration matches such an event." },
};

interface Props {
  zone: string;
  stream: string;
  audience: readonly string[];
}

/** Checks whether any registration would match a partly known event. */
export function InterestCheck({ zone, stream, audience }: Props) {
  const [domain, setDomain] = useState("");
  const [type, setType] = useState("");
  const [pairs, setPairs] = useState<Pair[]>([]);
  const [checked, setChecked] = useState(false);
  const check = useMutation({
    mutationFn: () => interestIn(zone, stream, { domain: domain || undefined, type: type || undefined, attributes: attributesOf(pairs) }, audience),
  });
  const change = (apply: () => void) => {
    apply();
    check.reset(); // the result belongs to the previous input
  };
  return (
    <Card title="Check interest">
      <Stack gap="sm" p="md" pt={0}>
        <Text size="sm" c="dimmed">
          Enter the known fields of an event; other fields may have any value.
        </Text>
        <Form
          fields={["shape"]}
          error={check.error}
          busy={check.isPending}
          action="Check"
          role="viewer"
          onSubmit={() => {
            setChecked(true);
            if (pairs.every((pair) => complaint(pair) === undefined)) check.mutate();
          }}
        >
          <SimpleGrid cols={2} spacing="sm">
            <TextInput label="Domain" placeholder="any" value={domain} onChange={(event) => change(() => setDomain(event.currentTarget.value))} error={errorAt(check.error, "shape.domain")} />
            <TextInput label="Type" placeholder="any" value={type} onChange={(event) => change(() => setType(event.currentTarget.value))} error={errorAt(check.error, "shape.type")} />
          </SimpleGrid>
          <PairsInput pairs={pairs} onChange={(next) => change(() => setPairs(next))} errorOf={checked ? complaint : undefined} />
        </Form>
        <div role="status" aria-label="Answer">
          {check.data !== undefined && <Answer interest={check.data} />}
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

const OPEN = "Listeners are not counted on a stream without producer back-pressure.";
