import { Button, Collapse, Group, Input, MultiSelect, NumberInput, SegmentedControl, Select, SimpleGrid, Stack, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconFilter } from "@tabler/icons-react";
import { type SubmitEvent, useState } from "react";

import type { Faults } from "../api/address";
import { useZone } from "../api/zone";
import { useChannels } from "../channels/channels";
import { attributesOf, complaint, type Pair, pairsOf } from "../pairs/pairs";
import { PairsInput } from "../pairs/PairsInput";
import { localTime, rfc3339 } from "../parts/time";
import type { Wish } from "./frames";

interface Props {
  wish: Wish | undefined;
  faults: Faults; // of the address that the wish was read from
  streams?: string[]; // to choose from
  newest: string; // the name of the start that is `now`
  action: string;
  onWish: (wish: Omit<Wish, "zone">) => void;
}

type Start = "now" | "oldest" | "sequence" | "time";

function startOf(wish: Wish | undefined, faults: Faults): Start {
  const from = wish?.from;
  if ("from" in faults || typeof from === "number") return "sequence";
  if (typeof from === "object") return "time";
  return from ?? "now";
}

/** Which events, and from where on. */
export function WishForm({ wish, faults, streams, newest, action, onWish }: Props) {
  const [stream, setStream] = useState(wish?.stream ?? null);
  const [start, setStart] = useState<Start>(startOf(wish, faults));
  const [sequence, setSequence] = useState<number | string>(typeof wish?.from === "number" ? wish.from : "from" in faults ? "" : 1);
  const [time, setTime] = useState(timeOf(wish));
  const [filter, setFilter] = useState(() => filterOf(wish));
  const [checked, setChecked] = useState(false);
  const count = countOf(filter);
  const [open, { toggle }] = useDisclosure(count > 0 || "attributes" in faults);

  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    setChecked(true);
    if (stream === null || filter.pairs.some((pair) => complaint(pair) !== undefined)) return;
    const from = start === "sequence" ? Number(sequence) : start === "time" ? { time: rfc3339(time) } : start;
    const { pairs, ...rest } = filter;
    onWish({ stream, from, ...rest, attributes: attributesOf(pairs) });
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
          <div>
            <SegmentedControl
              aria-label="Start from"
              data={[
                { value: "now", label: newest },
                { value: "oldest", label: "Oldest held" },
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
          <FilterFields filter={filter} onChange={setFilter} checked={checked} fault={faults.attributes} />
        </Collapse>
      </Stack>
    </form>
  );
}

interface Filter {
  domain: string;
  type: string;
  channels: string[];
  pairs: Pair[];
}

interface FilterProps {
  filter: Filter;
  onChange: (filter: Filter) => void;
  checked: boolean;
  fault: string | undefined;
}

function FilterFields({ filter, onChange, checked, fault }: FilterProps) {
  const names = useChannels(useZone()).data?.map((channel) => channel.name) ?? [];
  return (
    <Stack gap="sm" maw={720}>
      <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="sm">
        <TextInput
          label="Domain"
          placeholder="any"
          value={filter.domain}
          onChange={(event) => onChange({ ...filter, domain: event.currentTarget.value })}
        />
        <TextInput
          label="Type"
          placeholder="any"
          value={filter.type}
          onChange={(event) => onChange({ ...filter, type: event.currentTarget.value })}
        />
        <MultiSelect
          label="Channels"
          placeholder={filter.channels.length === 0 ? "any" : ""}
          data={[...new Set([...names, "default", ...filter.channels])]}
          value={filter.channels}
          onChange={(channels) => onChange({ ...filter, channels })}
        />
      </SimpleGrid>
      <PairsInput
        pairs={filter.pairs}
        onChange={(pairs) => onChange({ ...filter, pairs })}
        errorOf={checked ? complaint : undefined}
      />
      {fault !== undefined && <Input.Error>{fault}</Input.Error>}
    </Stack>
  );
}

function filterOf(wish: Wish | undefined): Filter {
  const { domain = "", type = "", channels = [], attributes = {} } = wish ?? {};
  return { domain, type, channels, pairs: pairsOf(attributes) };
}

function countOf({ domain, type, channels, pairs }: Filter): number {
  return [domain, type, ...channels, ...pairs.map((pair) => pair.name)].filter((text) => text !== "").length;
}

function timeOf(wish: Wish | undefined): string {
  const from = wish?.from;
  return localTime(typeof from === "object" && "time" in from ? new Date(from.time) : new Date());
}
