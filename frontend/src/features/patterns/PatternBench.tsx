import { Button, Grid, List, Stack, Text, Textarea, Title } from "@mantine/core";
import { useState } from "react";

import { parseExactly } from "../../api/exact";
import { errorAt } from "../../api/problem";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { State } from "../../parts/State";
import { type Output, outputText } from "./outputText";
import { type Language, type Part, type Step, useBench } from "./patterns";
import { WaitingPart } from "./WaitingPart";

const EVENTS = `{"domain": "d", "type": "A", "attributes": {"user": 7}}
{"domain": "d", "type": "B", "attributes": {"user": 7}}`;

interface Props {
  zone: string;
  language: Language;
  text: string;
  once?: boolean;
}

/** Tries a pattern on events that are typed, one a line: the events on the left, the steps on the right. */
export function PatternBench({ zone, language, text, once = false }: Props) {
  const bench = useBench(zone);
  const [events, setEvents] = useState(EVENTS);
  const [malformed, setMalformed] = useState<string>();
  const run = () => {
    const [parsed, wrong] = eventsOf(events);
    setMalformed(wrong);
    if (parsed !== undefined) bench.mutate({ language, text, once, events: parsed });
  };
  return (
    <section aria-label="Test bench">
      <Title order={2} mb="xs">
        Test bench
      </Title>
      <Grid gap="md">
        <Grid.Col span={{ base: 12, sm: 5 }}>
          <Stack gap="xs">
            <Textarea
              label="Events"
              description="JSON, one event a line. `time` is when it comes; without it, one second after the previous one."
              value={events}
              onChange={(change) => setEvents(change.currentTarget.value)}
              autosize
              minRows={6}
              styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
              spellCheck={false}
              error={malformed ?? errorAt(bench.error, "events")}
            />
            <Button variant="default" onClick={run} loading={bench.isPending} disabled={text.trim() === ""}>
              Try
            </Button>
          </Stack>
        </Grid.Col>
        <Grid.Col span={{ base: 12, sm: 7 }}>
          {bench.isError && <ProblemAlert error={bench.error} />}
          {bench.data !== undefined && (
            <Stack gap="sm" role="list" aria-label="Steps">
              <Text size="sm">
                Events: {bench.data.steps.length}, matches: {bench.data.matches}
              </Text>
              {!bench.data.is_complete && <Text size="sm">The dry run ended before the last event: it was too long.</Text>}
              {bench.data.steps.map((step, index) => (
                <OneStep key={index} step={step} />
              ))}
            </Stack>
          )}
        </Grid.Col>
      </Grid>
    </section>
  );
}

function OneStep({ step }: { step: Step }) {
  const event = step.event as { order: number; domain: string; type: string };
  const outputs = step.outputs as unknown as Output[];
  return (
    <div role="listitem">
      <Text size="sm" fw={600}>
        {event.order}. {event.domain}::{event.type}
      </Text>
      {outputs.map((one, index) => (
        <Text key={index} size="sm">
          <State state={one.output === "match" ? "ok" : one.output} label={one.output} /> <code>{outputText(one)}</code>
        </Text>
      ))}
      {step.tree === null ? (
        <Text size="sm" c="dimmed">
          {outputs.length > 0 ? "Nothing is waited for." : "No event is bound."}
        </Text>
      ) : (
        <List listStyleType="none" size="sm">
          <WaitingPart part={step.tree as unknown as Part} />
        </List>
      )}
    </div>
  );
}

/** The events that were typed, or what is wrong with them. */
function eventsOf(text: string): [unknown[]] | [undefined, string] {
  const found: unknown[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    try {
      found.push(parseExactly(line));
    } catch {
      return [undefined, `Line ${index + 1} is not JSON.`];
    }
  }
  return [found];
}
