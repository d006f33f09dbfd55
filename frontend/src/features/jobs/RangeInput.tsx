import { SimpleGrid, TextInput } from "@mantine/core";

import { errorAt } from "../../api/problem";
import { localTime, rfc3339 } from "../../parts/time";

/** As `<input type=datetime-local>` has them; empty: no bound. */
export interface TimeRange {
  since: string;
  until: string;
}

interface Props {
  range: TimeRange;
  sinceAbout?: string;
  untilAbout?: string;
  onChange: (range: TimeRange) => void;
  error: unknown;
}

/** A range of times, of appends if nothing else is said. */
export function RangeInput({ range, sinceAbout = "Empty: from the oldest event.", untilAbout = "Empty: until now.", onChange, error }: Props) {
  const backwards = isBackwards(range) ? "This must be after the start." : undefined;
  return (
    <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
      <TextInput
        type="datetime-local"
        step={1}
        label="Since"
        description={sinceAbout}
        value={range.since}
        onChange={(event) => onChange({ ...range, since: event.currentTarget.value })}
        error={errorAt(error, "since")}
      />
      <TextInput
        type="datetime-local"
        step={1}
        label="Until"
        description={untilAbout}
        value={range.until}
        onChange={(event) => onChange({ ...range, until: event.currentTarget.value })}
        error={backwards ?? errorAt(error, "until")}
      />
    </SimpleGrid>
  );
}

export function isBackwards({ since, until }: TimeRange): boolean {
  return since !== "" && until !== "" && until <= since;
}

/** As a job takes it. */
export function rangeOf({ since, until }: TimeRange): Record<string, string> {
  return { ...(since === "" ? {} : { since: rfc3339(since) }), ...(until === "" ? {} : { until: rfc3339(until) }) };
}

/** As it stands in the address of a form, in RFC 3339. */
export function rangeAt(search: URLSearchParams): TimeRange {
  const [since = "", until = ""] = ["since", "until"].map((name) => {
    const date = new Date(search.get(name) ?? "");
    return Number.isNaN(date.getTime()) ? "" : localTime(date);
  });
  return { since, until };
}
