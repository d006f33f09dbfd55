import { MultiSelect, Switch } from "@mantine/core";
import { useState } from "react";
import { useSearchParams } from "react-router";

import { errorAt } from "../../api/problem";
import { JobForm } from "../jobs/JobForm";
import { isBackwards, rangeAt, RangeInput, rangeOf } from "../jobs/RangeInput";
import { PatternEditor } from "../patterns/PatternEditor";
import { useStreamNames } from "../streams/streams";
import { patternAt } from "./patternBacktest";
import { SearchChoice } from "./SearchChoice";

/** A pattern, its streams and a time range. */
export function PatternBacktestForm({ zone }: { zone: string }) {
  const [search] = useSearchParams();
  const names = useStreamNames(zone).data ?? [];
  const [{ language, pattern, streams, once }, setDraft] = useState(() => patternAt(search));
  const [range, setRange] = useState(() => rangeAt(search));
  const [engine, setEngine] = useState("auto");
  const change = (next: object) => setDraft((before) => ({ ...before, ...next }));
  const ready = streams.length > 0 && pattern.trim() !== "" && !isBackwards(range);
  return (
    <JobForm
      zone={zone}
      job="backtest"
      about="Runs a pattern over months of events, including archived ones, in the order of a pattern group: how often it matches, when, by which events, and what it would emit. Nothing is created or emitted."
      fields={["streams", "language", "pattern", "once", "since", "until", "engine"]}
      params={ready ? { zone, streams, language, pattern, ...(once && { once }), ...rangeOf(range), engine } : undefined}
    >
      {(error) => (
        <>
          <MultiSelect
            label="Streams"
            description="Their events are seen in one order."
            data={names}
            value={streams}
            onChange={(next) => change({ streams: next })}
            searchable
            error={errorAt(error, "streams")}
          />
          <PatternEditor
            zone={zone}
            language={language}
            text={pattern}
            onLanguage={(next) => change({ language: next })}
            onChange={(next) => change({ pattern: next })}
            error={errorAt(error, "pattern")}
          />
          <Switch
            label="Once"
            description="It ends with its first match."
            checked={once}
            onChange={(event) => change({ once: event.currentTarget.checked })}
            error={errorAt(error, "once")}
          />
          <RangeInput range={range} onChange={setRange} error={error} />
          <SearchChoice value={engine} onChange={setEngine} error={error} />
        </>
      )}
    </JobForm>
  );
}
