import { Anchor, Button, Group, List, Stack, Text, Title } from "@mantine/core";
import { IconPlayerPause, IconPlayerPlay } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "react-router";

import { errorAt } from "../../api/problem";
import { pathIn } from "../../api/zone";
import { Facts } from "../../parts/Facts";
import { Form } from "../../parts/Form";
import { Json } from "../../parts/Json";
import { Loading } from "../../parts/Loading";
import { May } from "../../parts/May";
import { Moment } from "../../parts/Moment";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { Removal } from "../../parts/Removal";
import { whole } from "../../parts/text";
import { PatternBench } from "./PatternBench";
import { PatternEditor } from "./PatternEditor";
import { groupStreamsOf, onePattern, type Part, type Pattern, useChangePattern, useDeletePattern, waitingOf } from "./patterns";
import { PatternState } from "./PatternState";
import { WaitingPart } from "./WaitingPart";

interface Props {
  zone: string;
  id: number;
  onDeleted: () => void;
}

/** One pattern: what became of it, its text, and a test bench. */
export function PatternDetail({ zone, id, onDeleted }: Props) {
  const { data, error, isError, refetch } = useQuery(onePattern(zone, id));
  if (isError) return <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading h={320} />;
  return <Loaded key={data.etag} zone={zone} pattern={data.value} etag={data.etag} onReload={() => void refetch()} onDeleted={onDeleted} />;
}

interface LoadedProps {
  zone: string;
  pattern: Pattern;
  etag: string | undefined;
  onReload: () => void;
  onDeleted: () => void;
}

function Loaded({ zone, pattern, etag, onReload, onDeleted }: LoadedProps) {
  const change = useChangePattern(zone, pattern.id, etag);
  const remove = useDeletePattern(zone, pattern.id);
  const [text, setText] = useState(pattern.text);
  const isSuspended = pattern.status === "suspended";
  const Icon = isSuspended ? IconPlayerPlay : IconPlayerPause;
  return (
    <Stack gap="lg">
      <About pattern={pattern} />
      <Waits zone={zone} id={pattern.id} />
      {pattern.fault !== null && <Json value={pattern.fault} label="fault" />}
      <Form
        fields={["text"]}
        error={change.error}
        busy={change.isPending}
        action="Change"
        ready={text !== pattern.text}
        onReload={onReload}
        onSubmit={() => change.mutate({ text })}
      >
        <PatternEditor zone={zone} language={pattern.language} text={text} onChange={setText} error={errorAt(change.error, "text")} />
      </Form>
      <May>
        <Group gap="xs">
          <Button variant="default" loading={change.isPending} leftSection={<Icon size={16} />} onClick={() => change.mutate({ suspended: !isSuspended })}>
            {isSuspended ? "Resume" : "Suspend"}
          </Button>
          <Removal
            title={`Delete the pattern ${pattern.name}?`}
            about="It sees no further events. Its partial matches are discarded."
            removal={remove}
            onConfirm={() => remove.mutate(undefined, { onSuccess: onDeleted })}
          />
        </Group>
      </May>
      <BacktestLink zone={zone} pattern={pattern} text={text} />
      <PatternBench zone={zone} language={pattern.language} text={text} once={pattern.once} />
    </Stack>
  );
}

/** Leads to the form of a back-test, with the text as it stands in the editor. */
function BacktestLink({ zone, pattern, text }: { zone: string; pattern: Pattern; text: string }) {
  const streams = useQuery(groupStreamsOf(zone, pattern)).data ?? [];
  const search = new URLSearchParams({ language: pattern.language, pattern: text });
  for (const stream of streams) search.append("streams", stream);
  if (pattern.once) search.set("once", "true");
  return (
    <Anchor component={Link} to={`${pathIn(zone, "jobs/backtest")}?${search.toString()}`} size="sm">
      Back-test this pattern
    </Anchor>
  );
}

function Waits({ zone, id }: { zone: string; id: number }) {
  const { data, error } = useQuery(waitingOf(zone, id));
  return (
    <section aria-label="Partial matches">
      <Title order={2} mb="xs">
        Partial matches
      </Title>
      {error !== null && <ProblemAlert error={error} />}
      {data?.partitions.length === 0 && <Text size="sm">Nothing is bound.</Text>}
      {data?.partitions.map(({ key, tree }, index) => (
        <List key={index} listStyleType="none" size="sm" mb="xs">
          {key !== null && <List.Item>Key: {JSON.stringify(key)}</List.Item>}
          <WaitingPart part={tree as unknown as Part} />
        </List>
      ))}
      {data?.is_complete === false && <Text size="sm">There are more keys.</Text>}
    </section>
  );
}

function About({ pattern: one }: { pattern: Pattern }) {
  const dropped = Object.entries(one.dropped as Record<string, number>).map(([reason, count]) => `${reason}: ${whole(count)}`);
  return (
    <Facts
      facts={[
        ["State", <PatternState key="state" status={one.status} />],
        ["Name", one.name],
        ["Pattern group", one.group],
        ["Client", one.client],
        ["Language", one.language],
        ["Version", whole(one.version)],
        ["Once", one.once ? "yes" : "no"],
        ["Recent events", one.recent ? "yes" : "no"],
        ["Matches", whole(one.matches)],
        ["Dropped", dropped.join(", ") || "–"],
        ["Created", <Moment key="created" at={one.created_at} />],
      ]}
    />
  );
}
