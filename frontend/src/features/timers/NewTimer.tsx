import { SegmentedControl, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";

import { parseExactly } from "../../api/exact";
import { errorAt } from "../../api/problem";
import { AmountInput, TIMES } from "../../parts/AmountInput";
import { Form } from "../../parts/Form";
import { localTime, rfc3339 } from "../../parts/time";
import { ClientInput } from "../clients/ClientInput";
import { StreamChoice } from "../jobs/StreamChoice";
import { type NewTimer as Body, useCreateTimer } from "./timers";

const KINDS = [
  { value: "after", label: "After" },
  { value: "at", label: "At a time" },
  { value: "every", label: "Every" },
  { value: "cron", label: "Cron" },
] as const;
type Kind = (typeof KINDS)[number]["value"];
const FIELDS = ["client", "stream", "handle", "after_s", "at", "every_s", "cron", "timezone", "end"];
const AN_HOUR_MS = 3_600_000;
const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

interface Schedule {
  kind: Kind;
  seconds: number | null;
  time: string; // as `<input type=datetime-local>` has it
  end: string; // empty: none
  cron: string;
  timezone: string;
}

interface Props {
  zone: string;
  onMade: (id: number) => void;
}

/** Creates a timer of a client, with or without an event. */
export function NewTimer({ zone, onMade }: Props) {
  const create = useCreateTimer(zone);
  const [client, setClient] = useState("");
  const [stream, setStream] = useState<string>();
  const [handle, setHandle] = useState("");
  const [event, setEvent] = useState("");
  const [malformed, setMalformed] = useState(false);
  const [schedule, setSchedule] = useState<Schedule>(suggested);
  const submit = () => {
    const parsed = eventOf(event);
    setMalformed(parsed === null);
    if (parsed === null || stream === undefined) return;
    const body: Body = { client, stream, handle, ...timesOf(schedule), ...(parsed && { event: parsed }) };
    create.mutate(body, { onSuccess: ({ id }) => onMade(id) });
  };
  return (
    <Form
      fields={FIELDS}
      error={create.error}
      busy={create.isPending}
      action="Create"
      ready={client !== "" && stream !== undefined && handle !== ""}
      onSubmit={submit}
    >
      <ClientInput zone={zone} value={client} onChange={setClient} error={errorAt(create.error, "client")} />
      <StreamChoice zone={zone} value={stream} onChange={setStream} error={create.error} />
      <TextInput
        label="Handle"
        description="Unique among the client's timers."
        placeholder="reminder"
        value={handle}
        onChange={(change) => setHandle(change.currentTarget.value)}
        error={errorAt(create.error, "handle")}
      />
      <ScheduleFields value={schedule} onChange={setSchedule} error={create.error} />
      <Textarea
        label="Event"
        description="As JSON; empty: Time::Tick for the client."
        placeholder='{"domain": "shop", "type": "order.reminder", "attributes": {"order": 4711}}'
        value={event}
        onChange={(change) => setEvent(change.currentTarget.value)}
        autosize
        minRows={3}
        error={malformed ? "This is not a JSON object." : undefined}
      />
    </Form>
  );
}

function suggested(): Schedule {
  const time = localTime(new Date(Date.now() + AN_HOUR_MS));
  return { kind: "after", seconds: 3_600, time, end: "", cron: "0 8 * * MON-FRI", timezone: ZONE };
}

function ScheduleFields({ value, onChange, error }: { value: Schedule; onChange: (next: Schedule) => void; error: unknown }) {
  const set = (part: Partial<Schedule>) => onChange({ ...value, ...part });
  return (
    <>
      <SegmentedControl
        aria-label="When it fires"
        data={[...KINDS]}
        value={value.kind}
        onChange={(next) => set({ kind: KINDS.find((one) => one.value === next)?.value ?? value.kind })}
        fullWidth
      />
      {value.kind === "at" && <Time label="Time" value={value.time} onChange={(time) => set({ time })} error={errorAt(error, "at")} />}
      {(value.kind === "after" || value.kind === "every") && (
        <AmountInput
          label={value.kind === "after" ? "Delay" : "Interval"}
          description={value.kind === "after" ? "From now; it fires once." : "The first time is one interval from now."}
          units={TIMES}
          value={value.seconds}
          required
          onChange={(seconds) => set({ seconds })}
          error={errorAt(error, value.kind === "after" ? "after_s" : "every_s")}
        />
      )}
      {value.kind === "cron" && (
        <>
          <TextInput
            label="Cron expression"
            description="Minute, hour, day of month, month, day of week."
            value={value.cron}
            onChange={(change) => set({ cron: change.currentTarget.value })}
            error={errorAt(error, "cron")}
          />
          <TextInput
            label="Time zone"
            value={value.timezone}
            onChange={(change) => set({ timezone: change.currentTarget.value })}
            error={errorAt(error, "timezone")}
          />
        </>
      )}
      {(value.kind === "every" || value.kind === "cron") && (
        <Time label="End (optional)" value={value.end} onChange={(end) => set({ end })} error={errorAt(error, "end")} />
      )}
    </>
  );
}

function Time({ label, value, onChange, error }: { label: string; value: string; onChange: (next: string) => void; error: string | undefined }) {
  return (
    <TextInput
      type="datetime-local"
      step={1}
      label={label}
      value={value}
      onChange={(change) => onChange(change.currentTarget.value)}
      error={error}
    />
  );
}

function timesOf({ kind, seconds, time, end, cron, timezone }: Schedule): Partial<Body> {
  const until = end === "" ? {} : { end: rfc3339(end) };
  if (kind === "at") return { at: rfc3339(time) };
  if (kind === "cron") return { cron, timezone, ...until };
  if (seconds === null) return {};
  return kind === "after" ? { after_s: seconds } : { every_s: seconds, ...until };
}

/** The event that was typed; undefined: none; null: malformed. */
function eventOf(text: string): Body["event"] | null {
  if (text.trim() === "") return undefined;
  try {
    const found = parseExactly(text);
    return typeof found === "object" && found !== null && !Array.isArray(found) ? (found as Body["event"]) : null;
  } catch {
    return null;
  }
}
