import { Button, Group, NumberInput, Progress, SegmentedControl, Select, Stack, Text, TextInput } from "@mantine/core";
import { IconPlayerPlay, IconPlayerStop } from "@tabler/icons-react";
import { type KeyboardEvent, useState } from "react";

import { ProblemAlert } from "../../parts/ProblemAlert";
import { rate, whole } from "../../parts/text";
import { localTime, rfc3339 } from "../../parts/time";
import { type FilterRequest, filterRequestOf, type FilterDraft } from "../filters/draft";
import { progressOf, type Range, type Run, useDryRun } from "./dryRun";
import classes from "./DryRun.module.css";
import { MatchesOverTime } from "./MatchesOverTime";
import { Samples } from "./Samples";

const LAST = 10_000;
const LAST_MAX = 1_000_000;
const DAY_MS = 86_400_000;

interface Props {
  zone: string;
  draft: FilterDraft;
  streams: readonly string[]; // to choose from
  stream: string | undefined; // the one that is chosen
  onStream: (stream: string) => void;
  onRun?: (request: FilterRequest) => void;
}

/** A dry run of a draft on stored events: how many it would have matched, when, and which. Nothing is registered. */
export function DryRun({ zone, draft, streams, stream, onStream, onRun }: Props) {
  const { run, busy, start, stop } = useDryRun(zone);
  const [kind, setKind] = useState<"last" | "since" | "all">("last");
  const [last, setLast] = useState<number | string>(LAST);
  const [since, setSince] = useState(() => localTime(new Date(Date.now() - DAY_MS)));
  const [until, setUntil] = useState(""); // empty: up to the newest event
  const request = readable(draft);
  const early = kind === "since" && until !== "" && until <= since;
  const ready = request !== undefined && stream !== undefined && (kind !== "last" || Number(last) > 0) && !early;

  const submit = () => {
    if (request === undefined || stream === undefined) return;
    const range: Range = { stream };
    if (kind === "last") range.last = Number(last);
    else range.from = kind === "since" ? rfc3339(since) : "oldest";
    if (kind === "since" && until !== "") range.to = rfc3339(until);
    onRun?.(request);
    start(request, range);
  };
  // not a form, because it may be inside one
  const pressed = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.defaultPrevented || !(event.target instanceof HTMLInputElement)) return;
    event.preventDefault();
    if (ready && !busy) submit();
  };
  return (
    <Stack gap="md">
      <Group align="end" gap="sm" role="group" aria-label="Stored events" onKeyDown={pressed}>
        <Select
          label="Events of"
          placeholder="Choose a stream"
          data={streams}
          value={stream ?? null}
          onChange={(next) => next !== null && onStream(next)}
          allowDeselect={false}
          searchable
          w={{ base: "100%", xs: 200 }}
        />
        <SegmentedControl
          aria-label="Which events"
          data={[
            { value: "last", label: "The last" },
            { value: "since", label: "Since" },
            { value: "all", label: "All" },
          ]}
          value={kind}
          onChange={setKind}
        />
        {kind === "last" && (
          <NumberInput label="How many" min={1} max={LAST_MAX} thousandSeparator=" " hideControls w={110} value={last} onChange={setLast} />
        )}
        {kind === "since" && (
          <>
            <TextInput type="datetime-local" step={1} label="Since when" value={since} onChange={(event) => setSince(event.currentTarget.value)} />
            <TextInput
              type="datetime-local"
              step={1}
              label="Until when"
              description="Empty: until now."
              value={until}
              onChange={(event) => setUntil(event.currentTarget.value)}
              error={early && "The end must be after the start."}
            />
          </>
        )}
        {busy ? (
          <Button variant="default" leftSection={<IconPlayerStop size={16} />} onClick={stop}>
            Stop
          </Button>
        ) : (
          <Button disabled={!ready} leftSection={<IconPlayerPlay size={16} />} onClick={submit}>
            Run
          </Button>
        )}
      </Group>
      {run !== undefined && <RunResult zone={zone} run={run} busy={busy} />}
    </Stack>
  );
}

function RunResult({ zone, run, busy }: { zone: string; run: Run; busy: boolean }) {
  const { counts, outcome, request, error } = run;
  const message = messageOf(run, busy);
  return (
    <>
      {error !== undefined && <ProblemAlert error={error} />}
      {busy && <Progress value={counts === undefined ? 0 : 100 * progressOf(counts)} aria-label="Progress of the dry run" />}
      <div role="status" aria-label="Dry run">
        {counts !== undefined && (
          <dl className={classes.figures}>
            <Figure name="matched" value={whole(counts.matched)} />
            <Figure name={counts.looked_at === 1 ? "event evaluated" : "events evaluated"} value={whole(counts.looked_at)} />
            {outcome?.rate_per_hour != null && <Figure name="matched per hour" value={rate(outcome.rate_per_hour)} />}
          </dl>
        )}
        {message !== "" && (
          <Text size="sm" c="dimmed">
            {message}
          </Text>
        )}
      </div>
      {counts !== undefined && counts.looked_at > 0 && <MatchesOverTime series={counts.series} />}
      {outcome !== undefined && <Samples zone={zone} request={request} outcome={outcome} />}
    </>
  );
}

function Figure({ name, value }: { name: string; value: string }) {
  return (
    <div className={classes.figure}>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

const STOPPED = {
  end: "",
  events: "Stopped at the limit of events per run. Choose a later start to see the rest.",
  time: "Stopped at the time limit of a run. Choose a later start to see the rest.",
  gap: "Stopped where events are no longer retained.",
  closed: "The hub was shutting down.",
};

const NOTHING = {
  last: "The stream has no events yet.",
  from: "No event in that range. Choose an earlier start, or the last events.",
  to: "No event in that range. Choose an earlier start or a later end.",
};

function messageOf({ range, counts, outcome, stopped, error }: Run, busy: boolean): string {
  if (error !== undefined) return "";
  if (busy) return counts === undefined ? "Starting." : "Running.";
  if (outcome === undefined) return stopped ? "Stopped. The result covers the events up to that point." : "";
  if (outcome.looked_at === 0) return NOTHING[range.last !== undefined ? "last" : range.to !== undefined ? "to" : "from"];
  return STOPPED[outcome.stopped];
}

function readable(draft: FilterDraft): FilterRequest | undefined {
  try {
    return filterRequestOf(draft);
  } catch {
    return undefined;
  }
}
