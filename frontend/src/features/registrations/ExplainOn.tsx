import { Button, Group, NumberInput, Select, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type SubmitEvent, useState } from "react";

import { ExplainedRegistration } from "../explain/ExplainedDraft";
import { oneStream } from "../streams/streams";
import type { Registration } from "./registrations";

/** Explains why a registration matches a chosen event, or why not; initially the newest. */
export function ExplainOn({ zone, registration: { id, streams } }: { zone: string; registration: Registration }) {
  const [stream, setStream] = useState(streams[0] ?? "");
  const [typed, setTyped] = useState<number | string>();
  const [chosen, setChosen] = useState<{ stream: string; sequence: number }>();
  const newest = useQuery({ ...oneStream(zone, stream), enabled: stream !== "" }).data?.value.last ?? 0;
  const sequence = Number(typed ?? newest);
  return (
    <section aria-label="Explain">
      <Title order={2}>Explain</Title>
      <Text size="sm" c="dimmed" mb="xs">
        Why the registration matches an event, or why not.
      </Text>
      <Stack gap="sm">
        <Group
          align="end"
          gap="sm"
          component="form"
          onSubmit={(event: SubmitEvent) => {
            event.preventDefault();
            setChosen({ stream, sequence });
          }}
        >
          <Select
            label="Stream"
            data={streams}
            value={stream}
            allowDeselect={false}
            onChange={(next) => {
              setStream(next ?? "");
              setTyped(undefined);
            }}
            w={{ base: "100%", xs: 200 }}
          />
          <NumberInput label="Sequence" min={1} hideControls w={120} value={typed ?? (newest || "")} onChange={setTyped} />
          <Button type="submit" variant="default" disabled={sequence < 1}>
            Explain
          </Button>
        </Group>
        {chosen !== undefined && <ExplainedRegistration key={`${chosen.stream} ${chosen.sequence}`} zone={zone} id={id} {...chosen} />}
      </Stack>
    </section>
  );
}
