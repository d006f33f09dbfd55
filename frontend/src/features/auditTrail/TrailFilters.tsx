import { Button, Collapse, Group, Paper, Select, SimpleGrid, Stack, Switch } from "@mantine/core";
import { IconChevronDown, IconChevronUp } from "@tabler/icons-react";
import { useState } from "react";

import type { Faults } from "../../api/address";
import { localTime, rfc3339 } from "../../parts/time";
import { Written } from "../../parts/Written";
import { KINDS, type TrailFilter } from "./trail";

const WHO: Record<(typeof KINDS)[number], string> = {
  operator: "Operators",
  key: "API keys",
  command: "Commands of manage.py",
  hub: "The hub itself",
};
const FURTHER = [
  ["operator", "Operator", "alice"],
  ["client", "Client of the key", "shop"],
  ["key", "Key", ""],
  ["command", "Command", "createkey"],
  ["address", "Address or network", "10.1.0.0/16"],
  ["request_id", "Request id", ""],
  ["correlation", "Action", ""],
] as const;

interface Props {
  filter: TrailFilter;
  faults: Faults;
  onChange: (change: TrailFilter) => void;
}

/** Who, what and when; further fields are behind a button. */
export function TrailFilters({ filter, faults, onChange }: Props) {
  const selecting = [...FURTHER.map(([name]) => name), "since" as const, "until" as const].filter((name) => given(filter[name]) || name in faults).length;
  const [shown, setShown] = useState(selecting > 0);
  const isFiltered = Object.values(filter).some(given) || Object.keys(faults).length > 0;
  return (
    <Stack gap="sm" mb="md">
      <Group gap="sm">
        <Select
          aria-label="Callers"
          placeholder="All but the hub itself"
          data={KINDS.map((value) => ({ value, label: WHO[value] }))}
          value={filter.kind ?? null}
          error={"kind" in faults}
          onChange={(chosen) => onChange({ kind: KINDS.find((one) => one === chosen) })}
          clearable
          w={{ base: "100%", xs: 220 }}
        />
        <Written
          name="Resource"
          placeholder="Resource, as stream:orders"
          value={filter.resource ?? ""}
          onWritten={(text) => onChange({ resource: text || undefined })}
          w={{ base: "100%", xs: 220 }}
        />
        <Written
          name="Act"
          placeholder="Act, as key.*"
          value={filter.type ?? ""}
          onWritten={(text) => onChange({ type: text || undefined })}
          w={{ base: "100%", xs: 170 }}
        />
        <Button
          variant="default"
          aria-expanded={shown}
          rightSection={shown ? <IconChevronUp size={14} /> : <IconChevronDown size={14} />}
          onClick={() => setShown(!shown)}
        >
          {selecting === 0 ? "More filters" : `More filters (${selecting})`}
        </Button>
        <Switch
          label="All zones"
          checked={filter.all_zones === true}
          onChange={(event) => onChange({ all_zones: event.currentTarget.checked || undefined })}
        />
        {isFiltered && (
          <Button variant="subtle" onClick={() => onChange(Object.fromEntries(Object.keys(filter).map((name) => [name, undefined])))}>
            Clear
          </Button>
        )}
      </Group>
      <Collapse expanded={shown}>{shown && <Further filter={filter} faults={faults} onChange={onChange} />}</Collapse>
    </Stack>
  );
}

function Further({ filter, faults, onChange }: Props) {
  const moment = (name: "since" | "until") => (text: string) => onChange({ [name]: text === "" ? undefined : rfc3339(text) });
  return (
    <Paper withBorder bg="var(--card)" p="md" component="section" aria-label="More filters">
      <SimpleGrid cols={{ base: 1, xs: 2, lg: 4 }} spacing="sm">
        {FURTHER.map(([name, label, example]) => (
          <Written
            key={name}
            name={label}
            label={label}
            placeholder={example === "" ? "Any" : `Any, for example ${example}`}
            value={filter[name] ?? ""}
            error={faults[name]}
            onWritten={(text) => onChange({ [name]: text || undefined })}
          />
        ))}
        <Written name="Since" label="Since" type="datetime-local" step={1} value={localOf(filter.since)} error={faults.since} onWritten={moment("since")} />
        <Written name="Until" label="Until" type="datetime-local" step={1} value={localOf(filter.until)} error={faults.until} onWritten={moment("until")} />
      </SimpleGrid>
    </Paper>
  );
}

function given(value: unknown): boolean {
  return value !== undefined;
}

function localOf(time: string | undefined): string {
  return time === undefined ? "" : localTime(new Date(time));
}
