import { Checkbox, Input, NumberInput, SegmentedControl, SimpleGrid } from "@mantine/core";
import { useState } from "react";
import { useSearchParams } from "react-router";

import { type Faults, isFaulty, numberAt } from "../../api/address";
import { errorAt } from "../../api/problem";
import { EndpointSelect } from "../endpoints/EndpointSelect";
import { draftAt } from "../filters/address";
import { type FilterDraft, type FilterRequest, filterRequestOf, isEmpty, isReadable } from "../filters/draft";
import { FilterInput } from "../filters/FilterInput";
import { FaultAlert } from "../../parts/FaultAlert";
import { isComplete, type Position, positionAt, PositionInput, positionText } from "./PositionInput";
import { ReplayForm } from "./ReplayForm";
import type { NewReplay, ReplayRequest } from "./replays";
import { OPTIONS, type Options, optionsOf, RunOptions } from "./RunOptions";
import { StreamsInput } from "./StreamsInput";

type Events = "all" | "filter" | "registration";

interface Draft {
  endpoint: number | undefined;
  streams: string[];
  events: Events;
  filter: FilterDraft;
  registration: number | undefined;
  version: number | undefined;
  from: Position;
  to: Position;
  force: boolean;
  options: Options;
}

type Change = (part: Partial<Draft> | ((now: Draft) => Partial<Draft>)) => void;

const EVENTS: { value: Events; label: string }[] = [
  { value: "all", label: "All" },
  { value: "filter", label: "Of a filter" },
  { value: "registration", label: "Of a registration" },
];

/** The form of a replay of the log; the address may fill it in. */
export function LogForm({ zone }: { zone: string }) {
  const [search] = useSearchParams();
  const faults: Faults = {};
  const first = draftIn(search, faults);
  return isFaulty(faults) ? <FaultAlert faults={faults} search={search} /> : <Fields zone={zone} first={first} />;
}

function Fields({ zone, first }: { zone: string; first: Draft }) {
  const [draft, setDraft] = useState(first);
  const change: Change = (part) => setDraft((now) => ({ ...now, ...(typeof part === "function" ? part(now) : part) }));
  return (
    <ReplayForm zone={zone} about="Sends events of the log and its archive to an endpoint. No registration is needed." asked={askedOf(draft)}>
      {(error) => (
        <>
          <EndpointSelect zone={zone} label="Endpoint" placeholder="Choose an endpoint" value={draft.endpoint} onChange={(endpoint) => change({ endpoint })} error={errorAt(error, "endpoint")} />
          <StreamsInput
            zone={zone}
            description="Their events, one stream after another."
            placeholder={draft.events === "registration" ? "Those of the registration" : "Choose streams"}
            value={draft.streams}
            onChange={(streams) => change({ streams })}
            error={error}
          />
          <Selection zone={zone} draft={draft} change={change} error={error} />
          <PositionInput
            label="From"
            description="The events after this position."
            end="Oldest"
            position={draft.from}
            onChange={(from) => change({ from })}
            error={errorAt(error, "from")}
          />
          <PositionInput label="To" description="The events up to this position." end="Newest" position={draft.to} onChange={(to) => change({ to })} error={errorAt(error, "to")} />
          <RunOptions options={draft.options} onChange={(options) => change({ options })} error={error} />
          <Checkbox
            label="Force"
            description="Also send what was delivered or discarded, or has expired."
            checked={draft.force}
            onChange={(event) => change({ force: event.currentTarget.checked })}
          />
        </>
      )}
    </ReplayForm>
  );
}

interface SelectionProps {
  zone: string;
  draft: Draft;
  change: Change;
  error: unknown;
}

/** Which events: all, those of a filter, or those of a registration's version. */
function Selection({ zone, draft, change, error }: SelectionProps) {
  return (
    <>
      <Input.Wrapper label="Events" labelElement="div" labelProps={{ id: "events" }}>
        <div>
          <SegmentedControl aria-labelledby="events" data={EVENTS} value={draft.events} onChange={(events) => change({ events })} mt={4} />
        </div>
      </Input.Wrapper>
      {draft.events === "filter" && (
        <FilterInput zone={zone} stream={draft.streams[0]} draft={draft.filter} onChange={(next) => change((now) => ({ filter: next(now.filter) }))} checked={false} error={error} />
      )}
      {draft.events === "registration" && (
        <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
          <IdInput label="Registration" description="Of the endpoint's client; also an ended one." value={draft.registration} onChange={(registration) => change({ registration })} error={errorAt(error, "registration")} />
          <IdInput label="Version" description="Any of its versions." placeholder="newest" value={draft.version} onChange={(version) => change({ version })} error={errorAt(error, "version")} />
        </SimpleGrid>
      )}
    </>
  );
}

interface IdProps {
  label: string;
  description: string;
  placeholder?: string;
  value: number | undefined;
  onChange: (value: number | undefined) => void;
  error: string | undefined;
}

function IdInput({ value, onChange, ...more }: IdProps) {
  return <NumberInput {...more} min={1} allowDecimal={false} hideControls value={value ?? ""} onChange={(next) => onChange(next === "" ? undefined : Number(next))} />;
}

/** The request; undefined while a field is missing. */
function askedOf(draft: Draft): NewReplay | undefined {
  const { endpoint, streams, events, registration, version, from, to, force, options } = draft;
  const needed = events === "registration" ? registration !== undefined : streams.length > 0;
  const filter = events === "filter" ? filterFields(draft.filter) : {};
  if (endpoint === undefined || !needed || filter === undefined || !isComplete(from) || !isComplete(to)) return undefined;
  const body: ReplayRequest = {
    endpoint,
    ...(streams.length > 0 && { streams }),
    ...filter,
    ...(events === "registration" && { registration, version }),
    from: positionText(from),
    to: positionText(to),
    force,
    ...optionsOf(options),
  };
  return { source: "log", body };
}

function filterFields(draft: FilterDraft): Partial<FilterRequest> | undefined {
  return isEmpty(draft) || !isReadable(draft) ? undefined : filterRequestOf(draft);
}

function draftIn(search: URLSearchParams, faults: Faults): Draft {
  const filter = draftAt(search, faults);
  const registration = numberAt(search, "registration", faults);
  return {
    endpoint: numberAt(search, "endpoint", faults),
    streams: search.getAll("stream").filter((name) => name !== ""),
    events: registration !== undefined ? "registration" : isEmpty(filter) ? "all" : "filter",
    filter: search.has("language") ? filter : { ...filter, language: "predicate" },
    registration,
    version: numberAt(search, "version", faults),
    from: positionAt(search, "from"),
    to: positionAt(search, "to"),
    force: false,
    options: OPTIONS,
  };
}
