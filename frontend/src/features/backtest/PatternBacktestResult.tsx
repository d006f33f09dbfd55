import { Alert, Button, Group, List, SimpleGrid, Text } from "@mantine/core";
import { IconAdjustments, IconPlayerPause } from "@tabler/icons-react";
import { Link } from "react-router";

import { pathIn } from "../../api/zone";
import { Block } from "../../parts/Block";
import { Card } from "../../parts/Card";
import { type Column, DataTable } from "../../parts/DataTable";
import { Figure } from "../../parts/Figure";
import { Moment } from "../../parts/Moment";
import { whole } from "../../parts/text";
import { Judgement } from "../jobs/Judgement";
import { Rows } from "../jobs/Rows";
import type { ResultProps } from "../jobs/types";
import { outputText, positionText } from "../patterns/outputText";
import { WaitingPart } from "../patterns/WaitingPart";
import { Histogram } from "./Histogram";
import { type PatternBacktestDetails, type PatternOutput, patternDetails, patternParams, patternSearch } from "./patternBacktest";

const STOPPED = {
  once: "The pattern ended with its first match",
  suspended: "The agent was suspended",
  time_max: "The pattern took too long and was stopped",
};

/** The result of a pattern's back-test: its matches and other outputs, and what it waits for at the end. */
export function PatternBacktestResult({ run }: ResultProps) {
  const found = patternDetails(run);
  const params = patternParams(run);
  const zone = String(run.params.zone);
  const formOf = (range: Record<string, string>) => `${pathIn(zone, "jobs/backtest")}?${patternSearch(params, range)}`;
  const counted = params.language === "agent" ? 2 : 1; // an agent has no matches
  const times = Object.fromEntries(["since", "until"].flatMap((name) => (typeof run.params[name] === "string" ? [[name, run.params[name]]] : [])));
  return (
    <>
      <Judgement run={run} />
      <Stopped found={found} />
      <Figures found={found} />
      <Card title="Pattern" aside={<Text size="sm" c="dimmed">language: {params.language}; streams: {params.streams.join(", ")}</Text>}>
        <div style={{ padding: "0 16px 16px" }}>
          <Block text={params.pattern} label="The pattern" copy="Copy the pattern" wraps />
          <Group mt="sm">
            <Button component={Link} to={formOf(times)} variant="default" leftSection={<IconAdjustments size={16} />}>
              Edit and run again
            </Button>
          </Group>
        </div>
      </Card>
      {found.histogram.length > 0 && (
        <Histogram
          histogram={found.histogram.map((row) => [row[0], row[counted]])}
          width={found.bucket_s}
          to={([since, until]) => formOf({ since: since.toISOString(), until: until.toISOString() })}
        />
      )}
      <Outputs title="Matches" outputs={found.sample} count={found.matches} />
      <Outputs title="Notifications and announced events" outputs={found.outputs} count={found.notified + found.announced + found.failed} />
      <Waiting found={found} />
      <Rows title="Skipped segments" rows={found.skipped} />
    </>
  );
}

function Stopped({ found: { stopped } }: { found: PatternBacktestDetails }) {
  if (stopped === null) return null;
  const { reason, at, fault } = stopped;
  return (
    <Alert color={reason === "once" ? "blue" : "yellow"} variant="light" icon={<IconPlayerPause />} title={STOPPED[reason]}>
      <Text size="sm">
        By the event {positionText(at)}; later events change nothing.{" "}
        {fault !== null && `Line ${fault.line}, column ${fault.column}: ${fault.message}`}
      </Text>
    </Alert>
  );
}

function Figures({ found }: { found: PatternBacktestDetails }) {
  const dropped = Object.entries(found.dropped);
  const total = dropped.reduce((sum, [, count]) => sum + count, 0);
  return (
    <SimpleGrid cols={{ base: 2, lg: 4 }} spacing="md">
      <Figure label="Matches" value={whole(found.matches)} />
      <Figure label="Notifications" value={whole(found.notified)} />
      <Figure label="Announced events" value={whole(found.announced)} />
      <Figure label="Failed runs" value={whole(found.failed)} about="of an agent" />
      <Figure label="Events searched" value={whole(found.searched_events)} />
      <Figure label="Segments searched" value={whole(found.searched_segments)} />
      <Figure label="Segments skipped" value={whole(found.skipped_segments)} about={found.skipped_segments === 0 ? "all were read" : "listed below"} />
      <Figure label="Discarded" value={whole(total)} about={dropped.map(([reason, count]) => `${reason}: ${whole(count)}`).join(", ") || "nothing"} />
    </SimpleGrid>
  );
}

function Outputs({ title, outputs, count }: { title: string; outputs: PatternOutput[]; count: number }) {
  if (count === 0) return null;
  const columns: Column<PatternOutput>[] = [
    { title: "Completed", cell: ({ at }) => <Moment at={at.appended_at} /> },
    { title: "By the event", cell: ({ at }) => positionText(at) },
    { title: "Output", cell: ({ output }) => output },
    { title: "Key", cell: ({ key }) => (key == null ? "–" : JSON.stringify(key)) },
    { title: "Contents", cell: (one) => <code>{outputText(one)}</code>, width: 420 },
  ];
  const shown = outputs.length < count ? `${whole(outputs.length)} of ${whole(count)}` : `all ${whole(count)}`;
  return (
    <Card title={title} aside={<Text size="sm" c="dimmed" className="number">{shown}</Text>}>
      <DataTable label={title} items={outputs} columns={columns} keyOf={(one) => String(outputs.indexOf(one))} />
    </Card>
  );
}

function Waiting({ found: { waiting, waiting_keys: keys } }: { found: PatternBacktestDetails }) {
  if (waiting.length === 0) return null;
  const shown = waiting.length < keys ? `${whole(waiting.length)} of ${whole(keys)} keys` : `all ${whole(keys)}`;
  return (
    <Card title="Partial matches at the end" aside={<Text size="sm" c="dimmed" className="number">{shown}</Text>}>
      <div style={{ padding: "0 16px 16px" }}>
        {waiting.map(({ key, tree }, index) => (
          <List key={index} listStyleType="none" size="sm" mb="xs">
            {key !== null && <List.Item>Key: {JSON.stringify(key)}</List.Item>}
            <WaitingPart part={tree} />
          </List>
        ))}
      </div>
    </Card>
  );
}
