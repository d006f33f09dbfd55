import { Button, Group, Stack, Text, Textarea } from "@mantine/core";
import { useState } from "react";

import { Json } from "../../parts/Json";
import { May } from "../../parts/May";
import { objectOf } from "../../parts/objectOf";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { type Source, useChangeSource, useTryMap } from "./sources";

interface Props {
  zone: string;
  source: Source;
  sample: number | undefined; // the request that is shown
}

/** Tries a map on a sample or a typed body, and stores it. */
export function TestBench({ zone, source, sample }: Props) {
  const attempt = useTryMap(zone, source.id);
  const change = useChangeSource(zone, source.id);
  const [text, setText] = useState(() => JSON.stringify(source.mapping, null, 2));
  const [body, setBody] = useState("");
  const mapping = objectOf(text);
  const request = sample === undefined || body !== "" ? { body } : { sample };
  return (
    <Stack gap="md">
      <Textarea
        label="Map"
        description="As JSON; a field that it does not have is mapped as usual for the provider."
        placeholder='{"key": {"body": "/repository/full_name"}}'
        value={text}
        onChange={(next) => setText(next.currentTarget.value)}
        autosize
        minRows={3}
        error={mapping === undefined ? "This is not a JSON object." : undefined}
      />
      <Textarea
        label="Body"
        description={sample === undefined ? "Of a request, as JSON." : `Empty: that of request ${sample}.`}
        value={body}
        onChange={(next) => setBody(next.currentTarget.value)}
        autosize
        minRows={2}
      />
      <Group gap="xs">
        <Button
          variant="default"
          disabled={mapping === undefined}
          loading={attempt.isPending}
          onClick={() => attempt.mutate({ mapping, ...request })}
        >
          Try the map
        </Button>
        <May>
          <Button
            disabled={mapping === undefined}
            loading={change.isPending}
            onClick={() => change.mutate({ mapping })}
          >
            Save the map
          </Button>
        </May>
      </Group>
      {change.isError && <ProblemAlert error={change.error} />}
      {attempt.isError && <ProblemAlert error={attempt.error} />}
      {attempt.data !== undefined && (
        <>
          <Text size="sm" c="dimmed">
            Nothing was emitted. The event would be:
          </Text>
          <Json value={attempt.data.event} label="event" />
        </>
      )}
    </Stack>
  );
}
