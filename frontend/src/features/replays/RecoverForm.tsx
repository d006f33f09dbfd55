import { MultiSelect, NumberInput, Select, SimpleGrid } from "@mantine/core";
import { useState } from "react";
import { useSearchParams } from "react-router";

import { type Faults, isFaulty, numberAt } from "../../api/address";
import { errorAt } from "../../api/problem";
import { OUTCOMES, RECOVERABLE, type RecoverableState } from "../deliveries/deliveries";
import { stateAt, textAt } from "../deliveries/search";
import { EndpointSelect } from "../endpoints/EndpointSelect";
import { outcomeOf } from "../endpoints/endpoints";
import { isBackwards, rangeAt, RangeInput, rangeOf, type TimeRange } from "../jobs/RangeInput";
import { FaultAlert } from "../../parts/FaultAlert";
import { stateText } from "../../parts/text";
import { ReplayForm } from "./ReplayForm";
import type { NewReplay } from "./replays";
import { OPTIONS, type Options, optionsOf, RunOptions } from "./RunOptions";
import { StreamsInput } from "./StreamsInput";

interface Draft {
  endpoint: number | undefined;
  states: RecoverableState[];
  outcome: string | undefined;
  status: number | undefined;
  range: TimeRange;
  streams: string[];
  options: Options;
}

/** The form that recovers an endpoint; the address may fill it in, with a group of dead letters. */
export function RecoverForm({ zone }: { zone: string }) {
  const [search] = useSearchParams();
  const faults: Faults = {};
  const first = draftIn(search, faults);
  return isFaulty(faults) ? <FaultAlert faults={faults} search={search} /> : <Fields zone={zone} first={first} />;
}

function Fields({ zone, first }: { zone: string; first: Draft }) {
  const [draft, setDraft] = useState(first);
  const change = (part: Partial<Draft>) => setDraft((now) => ({ ...now, ...part }));
  return (
    <ReplayForm zone={zone} about="Resends the deliveries of an endpoint that ended without success before the run was requested." asked={askedOf(draft)}>
      {(error) => (
        <>
          <EndpointSelect zone={zone} label="Endpoint" placeholder="Choose an endpoint" value={draft.endpoint} onChange={(endpoint) => change({ endpoint })} error={errorAt(error, "endpoint")} />
          <MultiSelect
            label="States"
            description="The states in which the deliveries ended."
            data={RECOVERABLE.map((value) => ({ value, label: stateText(value) }))}
            value={draft.states}
            onChange={(states) => change({ states: RECOVERABLE.filter((one) => states.includes(one)) })}
            error={errorAt(error, "states")}
          />
          <Cause draft={draft} change={change} error={error} />
          <RangeInput
            range={draft.range}
            sinceAbout="When they ended. Empty: from the oldest."
            untilAbout="When they ended. Empty: until now."
            onChange={(range) => change({ range })}
            error={error}
          />
          <StreamsInput zone={zone} description="Only deliveries of events of these streams." placeholder="Every stream" value={draft.streams} onChange={(streams) => change({ streams })} error={error} />
          <RunOptions options={draft.options} onChange={(options) => change({ options })} error={error} />
        </>
      )}
    </ReplayForm>
  );
}

interface CauseProps {
  draft: Draft;
  change: (part: Partial<Draft>) => void;
  error: unknown;
}

function Cause({ draft, change, error }: CauseProps) {
  return (
    <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
      <Select
        label="Last attempt"
        description="Only deliveries whose last attempt had this outcome."
        placeholder="Any outcome"
        data={OUTCOMES.map((value) => ({ value, label: outcomeOf({ outcome: value, status: null }) }))}
        value={draft.outcome ?? null}
        onChange={(outcome) => change({ outcome: outcome ?? undefined })}
        clearable
        error={errorAt(error, "outcome")}
      />
      <NumberInput
        label="Status code"
        description="Only deliveries whose last response had this status code."
        placeholder="Any"
        min={100}
        max={999}
        allowDecimal={false}
        hideControls
        value={draft.status ?? ""}
        onChange={(status) => change({ status: status === "" ? undefined : Number(status) })}
        error={errorAt(error, "status")}
      />
    </SimpleGrid>
  );
}

/** The request; undefined while a field is missing. */
function askedOf({ endpoint, states, outcome, status, range, streams, options }: Draft): NewReplay | undefined {
  if (endpoint === undefined || states.length === 0 || isBackwards(range)) return undefined;
  const body = { states, outcome, status, ...rangeOf(range), ...(streams.length > 0 && { streams }), ...optionsOf(options) };
  return { source: "deliveries", endpoint, body };
}

function draftIn(search: URLSearchParams, faults: Faults): Draft {
  const state = stateAt(search, RECOVERABLE, faults);
  return {
    endpoint: numberAt(search, "endpoint", faults),
    states: state === undefined ? ["dead_lettered", "dropped"] : [state],
    outcome: textAt(search, "outcome"),
    status: numberAt(search, "status", faults),
    range: rangeAt(search),
    streams: search.getAll("stream").filter((name) => name !== ""),
    options: OPTIONS,
  };
}
