import { Alert, Anchor, Button, Group, List, Stack, Text, Title } from "@mantine/core";
import { IconAlertCircle, IconPlayerPause, IconPlayerPlay } from "@tabler/icons-react";
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
import { Undisturbed } from "../../parts/Undisturbed";
import { PatternBench } from "./PatternBench";
import { PatternEditor } from "./PatternEditor";
import { groupStreamsOf, languageText, onePattern, type Part, type Pattern, useChangePattern, useDeletePattern, waitingOf } from "./patterns";
import { PatternState } from "./PatternState";
import { WaitingPart } from "./WaitingPart";

interface Props {
  zone: string;
  id: number;
  onDeleted: () => void;
}

/** One pattern: what became of it, its text, and a test bench. All but the text in the form is current. */
export function PatternDetail({ zone, id, onDeleted }: Props) {
  const { data, error, isError, refetch } = useQuery(onePattern(zone, id));
  if (isError) return <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading h={320} />;
  return (
    <Stack gap="lg">
      <About pattern={data.value} />
      {data.value.fault !== null && <SuspendedBy fault={data.value.fault} />}
      <Waits zone={zone} id={id} />
      <Undisturbed found={data} reload={refetch}>
        {(kept, renew) => <Editing zone={zone} pattern={kept.value} etag={kept.etag} status={data.value.status} onRenew={renew} onDeleted={onDeleted} />}
      </Undisturbed>
    </Stack>
  );
}

interface EditingProps {
  zone: string;
  pattern: Pattern; // as it was when the form was opened
  etag: string | undefined;
  status: Pattern["status"]; // now
  onRenew: () => void;
  onDeleted: () => void;
}

function Editing({ zone, pattern, etag, status, onRenew, onDeleted }: EditingProps) {
  const change = useChangePattern(zone, pattern.id, etag);
  const suspend = useChangePattern(zone, pattern.id);
  const remove = useDeletePattern(zone, pattern.id);
  const [text, setText] = useState(pattern.text);
  const isEdited = text !== pattern.text;
  const isSuspended = status === "suspended";
  const Icon = isSuspended ? IconPlayerPlay : IconPlayerPause;
  return (
    <>
      <Form
        fields={["text"]}
        error={change.error}
        busy={change.isPending}
        action="Change"
        ready={isEdited}
        onReload={onRenew}
        onSubmit={() => change.mutate({ text }, { onSuccess: onRenew })}
      >
        <PatternEditor zone={zone} language={pattern.language} text={text} onChange={setText} error={errorAt(change.error, "text")} />
      </Form>
      {suspend.isError && <ProblemAlert error={suspend.error} />}
      <May>
        <Group gap="xs">
          <Button
            variant="default"
            loading={suspend.isPending}
            leftSection={<Icon size={16} />}
            onClick={() => suspend.mutate({ suspended: !isSuspended }, { onSuccess: isEdited ? undefined : onRenew })}
          >
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
    </>
  );
}

function SuspendedBy({ fault }: { fault: NonNullable<Pattern["fault"]> }) {
  const { code, message } = fault as { code?: string; message?: string };
  return (
    <Alert color="red" variant="light" icon={<IconAlertCircle />} title={`Suspended by the hub: ${code ?? ""}`}>
      <Text size="sm">{message} Change the text, or resume it.</Text>
      <Json value={fault} label="fault" />
    </Alert>
  );
}

/** Leads to the form of a back-test, with the text as it stands in the editor. */
function BacktestLink({ zone, pattern, text }: { zone: string; pattern: Pattern; text: string }) {
  const streams = useQuery(groupStreamsOf(zone, pattern)).data;
  if (streams === undefined) return null;
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
      {data?.partitions.length === 0 && <Text size="sm">No event has begun a match.</Text>}
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
        ["Language", languageText(one.language)],
        ["Version", whole(one.version)],
        ["Ends with its first match", one.once ? "yes" : "no"],
        ["Sees earlier events", one.recent ? "yes" : "no"],
        ["Matches", whole(one.matches)],
        ["Dropped", dropped.join(", ") || "–"],
        ["Created", <Moment key="created" at={one.created_at} />],
      ]}
    />
  );
}
