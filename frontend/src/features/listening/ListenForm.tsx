import { Button, Collapse, Group, Input, MultiSelect, NumberInput, SegmentedControl, Select, Stack, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconFilter } from "@tabler/icons-react";
import { type SubmitEvent, useState } from "react";

import type { Faults } from "../../api/address";
import { useZone } from "../../api/zone";
import { useChannels } from "../channels/channels";
import { draftOf, type FilterDraft, isReadable, PAIRS } from "../filters/draft";
import { FilterInput } from "../filters/FilterInput";
import { attributesOf, complaint } from "../../parts/pairs/pairs";
import { localTime, rfc3339 } from "../../parts/time";
import type { ListenRequest } from "../events/frames";
import classes from "./ListenForm.module.css";

interface Props {
  request: ListenRequest | undefined;
  faults: Faults; // of the address that holds the request
  streams?: string[]; // to choose from
  newest: string; // label of the start `now`
  action: string;
  onRequest: (request: Omit<ListenRequest, "zone">) => void;
}

type Start = "now" | "oldest" | "sequence" | "time";

function startOf(request: ListenRequest | undefined, faults: Faults): Start {
  const from = request?.from;
  if ("from" in faults || typeof from === "number") return "sequence";
  if (typeof from === "object") return "time";
  return from ?? "now";
}

/** The form of a listen request: stream, start and filter. */
export function ListenForm({ request, faults, streams, newest, action, onRequest }: Props) {
  const [stream, setStream] = useState(request?.stream ?? null);
  const [start, setStart] = useState<Start>(startOf(request, faults));
  const [sequence, setSequence] = useState<number | string>(typeof request?.from === "number" ? request.from : "from" in faults ? "" : 1);
  const [time, setTime] = useState(timeOf(request));
  const [filter, setFilter] = useState(() => filterOf(request));
  const [checked, setChecked] = useState(false);
  const count = countOf(filter);
  const [open, { toggle }] = useDisclosure(count > 0 || "attributes" in faults);

  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    setChecked(true);
    if (stream === null || !isReadable(filter.draft) || filter.draft.pairs.some((pair) => complaint(pair) !== undefined)) return;
    const from = start === "sequence" ? Number(sequence) : start === "time" ? { time: rfc3339(time) } : start;
    onRequest({ stream, from, channels: filter.channels, ...partsOf(filter.draft) });
  };

  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        <Group align="end" gap="sm">
          {streams !== undefined && (
            <Select
              label="Stream"
              data={streams}
              value={stream}
              onChange={setStream}
              allowDeselect={false}
              searchable
              w={{ base: "100%", xs: 240 }}
              error={checked && stream === null ? "Choose a stream." : undefined}
            />
          )}
          <div className={classes.starts}>
            <SegmentedControl
              aria-label="Start from"
              className={classes.starts}
              classNames={{ label: classes.start }}
              data={[
                { value: "now", label: newest },
                { value: "oldest", label: "Oldest stored" },
                { value: "sequence", label: "Sequence" },
                { value: "time", label: "Time" },
              ]}
              value={start}
              onChange={setStart}
            />
          </div>
          {start === "sequence" && (
            <NumberInput
              label="From sequence"
              min={1}
              w={130}
              value={sequence}
              onChange={setSequence}
              error={"from" in faults}
              hideControls
            />
          )}
          {start === "time" && (
            <TextInput
              type="datetime-local"
              step={1}
              label="From time"
              value={time}
              onChange={(event) => setTime(event.currentTarget.value)}
            />
          )}
          <Button
            variant="default"
            leftSection={<IconFilter size={16} stroke={1.7} />}
            aria-expanded={open}
            onClick={toggle}
          >
            {count === 0 ? "Filter" : `Filter (${count})`}
          </Button>
          <Button type="submit">{action}</Button>
        </Group>
        <Collapse expanded={open}>
          {open && <FilterFields stream={stream ?? undefined} filter={filter} onChange={setFilter} checked={checked} fault={faults.attributes} />}
        </Collapse>
      </Stack>
    </form>
  );
}

interface Filter {
  draft: FilterDraft;
  channels: string[];
}

interface FilterProps {
  stream: string | undefined;
  filter: Filter;
  onChange: (change: (latest: Filter) => Filter) => void;
  checked: boolean;
  fault: string | undefined;
}

function FilterFields({ stream, filter, onChange, checked, fault }: FilterProps) {
  const zone = useZone();
  const names = useChannels(zone).data?.map((channel) => channel.name) ?? [];
  return (
    <Stack gap="sm" maw={720}>
      <FilterInput
        zone={zone}
        stream={stream}
        draft={filter.draft}
        onChange={(change) => onChange((latest) => ({ ...latest, draft: change(latest.draft) }))}
        checked={checked}
        error={undefined}
        verdict={false}
      />
      {fault !== undefined && <Input.Error>{fault}</Input.Error>}
      <MultiSelect
        label="Channels"
        placeholder={filter.channels.length === 0 ? "any" : ""}
        data={[...new Set([...names, "default", ...filter.channels])]}
        value={filter.channels}
        onChange={(channels) => onChange((latest) => ({ ...latest, channels }))}
      />
    </Stack>
  );
}

function filterOf(request: ListenRequest | undefined): Filter {
  if (request === undefined) return { draft: draftOf(), channels: [] };
  return { draft: { ...draftOf({ ...request, filter: null }), text: request.filter ?? "" }, channels: request.channels };
}

/** The parts of a draft that a listen request holds. */
function partsOf({ language, text, domain, type, application, pairs }: FilterDraft): Pick<ListenRequest, "attributes" | "language" | "filter" | "domain" | "type" | "application"> {
  if (language !== PAIRS && text.trim() !== "") return { language, filter: text, attributes: {} };
  return { domain, type, application, attributes: attributesOf(pairs) };
}

function countOf({ draft: { language, text, domain, type, application, pairs }, channels }: Filter): number {
  const parts = language === PAIRS ? [domain, type, application, ...pairs.map((pair) => pair.name)] : [text.trim()];
  return [...parts, ...channels].filter((one) => one !== "").length;
}

function timeOf(request: ListenRequest | undefined): string {
  const from = request?.from;
  return localTime(typeof from === "object" && "time" in from ? new Date(from.time) : new Date());
}
