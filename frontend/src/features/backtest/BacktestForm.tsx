import { SegmentedControl, Stack } from "@mantine/core";
import { useState } from "react";
import { useSearchParams } from "react-router";

import { type Faults, isFaulty } from "../../api/address";
import { draftAt } from "../filters/address";
import type { FilterDraft } from "../filters/draft";
import { FilterInput } from "../filters/FilterInput";
import { JobForm } from "../jobs/JobForm";
import { isBackwards, rangeAt, RangeInput, rangeOf } from "../jobs/RangeInput";
import { StreamChoice } from "../jobs/StreamChoice";
import { FaultAlert } from "../../parts/FaultAlert";
import { filterOf } from "./backtest";
import { PatternBacktestForm } from "./PatternBacktestForm";
import { SearchChoice } from "./SearchChoice";

/** The form of a back-test: of a filter or of a pattern; the address may fill it in. */
export function BacktestForm({ zone }: { zone: string }) {
  const [search] = useSearchParams();
  const [kind, setKind] = useState(search.has("pattern") ? "pattern" : "filter");
  const kinds = [
    { value: "filter", label: "Filter" },
    { value: "pattern", label: "Pattern" },
  ];
  return (
    <Stack gap="md" align="flex-start">
      <SegmentedControl aria-label="Back-test of" data={kinds} value={kind} onChange={setKind} />
      {kind === "pattern" ? <PatternBacktestForm zone={zone} /> : <FilterForm zone={zone} />}
    </Stack>
  );
}

/** A filter, a stream and a time range. */
function FilterForm({ zone }: { zone: string }) {
  const [search] = useSearchParams();
  const faults: Faults = {};
  const draft = draftAt(search, faults);
  return isFaulty(faults) ? <FaultAlert faults={faults} search={search} /> : <Fields zone={zone} first={draft} search={search} />;
}

function Fields({ zone, first, search }: { zone: string; first: FilterDraft; search: URLSearchParams }) {
  const [draft, setDraft] = useState(search.has("language") ? first : { ...first, language: "predicate" as const });
  const [stream, setStream] = useState(search.get("stream") ?? undefined);
  const [range, setRange] = useState(() => rangeAt(search));
  const [engine, setEngine] = useState("auto");
  const filter = filterOf(draft);
  const ready = stream !== undefined && filter !== undefined && !isBackwards(range);
  return (
    <JobForm
      zone={zone}
      job="backtest"
      about="Evaluates a filter against months of events, including archived ones: how many match, when, and which. Nothing is registered or delivered."
      fields={["stream", "language", "filter", "since", "until", "engine"]}
      params={ready ? { zone, stream, ...filter, ...rangeOf(range), engine } : undefined}
    >
      {(error) => (
        <>
          <StreamChoice zone={zone} value={stream} onChange={setStream} error={error} />
          <FilterInput zone={zone} stream={stream} draft={draft} onChange={setDraft} checked={false} error={error} />
          <RangeInput range={range} onChange={setRange} error={error} />
          <SearchChoice value={engine} onChange={setEngine} error={error} />
        </>
      )}
    </JobForm>
  );
}
