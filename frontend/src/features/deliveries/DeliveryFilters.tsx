import { Button, Collapse, Group, Paper, Select, SimpleGrid, Stack } from "@mantine/core";
import { IconChevronDown, IconChevronUp } from "@tabler/icons-react";
import { useState } from "react";

import { type Faults, numberIn } from "../../api/address";
import { useClientNames } from "../clients/clients";
import { EndpointSelect } from "../endpoints/EndpointSelect";
import { outcomeOf } from "../endpoints/endpoints";
import { useStreamNames } from "../streams/streams";
import { localTime, rfc3339 } from "../../parts/time";
import { Written } from "../../parts/Written";
import { CLEARED, type DeliveryFilter, isEnded, OUTCOMES, SELECTING, STATES, UNSELECTED } from "./deliveries";
import { StateChoice } from "./StateChoice";

interface Props {
  zone: string;
  filter: DeliveryFilter;
  faults: Faults;
  onChange: (change: Partial<DeliveryFilter>) => void;
}

/** What is examined, the state, and behind a button the fields that select further. */
export function DeliveryFilters({ zone, filter, faults, onChange }: Props) {
  const selecting = SELECTING.filter((name) => filter[name] !== undefined || name in faults).length;
  const [shown, setShown] = useState(selecting > 0);
  const streams = useStreamNames(zone);
  const { endpoint, stream, sequence, state } = filter;
  const given = Object.values(filter).some((value) => value !== undefined) || Object.keys(faults).length > 0;
  return (
    <Stack gap="sm" mb="md">
      <Group gap="sm">
        <EndpointSelect
          zone={zone}
          aria-label="Endpoint"
          placeholder={stream !== undefined || isEnded(state) ? "All endpoints" : "Choose an endpoint"}
          value={endpoint}
          error={"endpoint" in faults}
          onChange={(chosen) => onChange({ endpoint: chosen })}
          w={{ base: "100%", xs: 320 }}
        />
        <Select
          aria-label="Stream"
          placeholder="Every stream"
          data={streams.data ?? []}
          value={stream ?? null}
          error={"stream" in faults}
          onChange={(chosen) => onChange({ stream: chosen ?? undefined, sequence: undefined })}
          clearable
          searchable
          w={{ base: "100%", xs: 170 }}
        />
        <Written
          name="Sequence"
          placeholder="Sequence"
          pattern="[0-9]{1,15}"
          inputMode="numeric"
          value={sequence === undefined ? "" : String(sequence)}
          error={"sequence" in faults}
          onWritten={(text) => onChange(text === "" ? { sequence: undefined } : { ...UNSELECTED, sequence: numberIn(text) ?? 1 })}
          w={{ base: "100%", xs: 110 }}
        />
        <Button
          variant="default"
          aria-expanded={shown}
          rightSection={shown ? <IconChevronUp size={14} /> : <IconChevronDown size={14} />}
          onClick={() => setShown(!shown)}
        >
          {selecting === 0 ? "More filters" : `More filters (${selecting})`}
        </Button>
        {given && (
          <Button variant="subtle" onClick={() => onChange(CLEARED)}>
            Clear
          </Button>
        )}
      </Group>
      <Collapse expanded={shown}>{shown && <Further zone={zone} filter={filter} faults={faults} onChange={(next) => onChange({ ...next, sequence: undefined })} />}</Collapse>
      <StateChoice states={STATES} all value={state} faulty={"state" in faults} onChange={(chosen) => onChange({ state: chosen })} />
    </Stack>
  );
}

function Further({ zone, filter, faults, onChange }: Props) {
  const clients = useClientNames(zone);
  const written = (name: "type" | "event") => (text: string) => onChange({ [name]: text || undefined });
  const moment = (name: "since" | "until") => (text: string) => onChange({ [name]: text === "" ? undefined : rfc3339(text) });
  return (
    <Paper withBorder bg="var(--card)" p="md" component="section" aria-label="More filters">
      <SimpleGrid cols={{ base: 1, xs: 2, lg: 4 }} spacing="sm">
        <Written name="Created since" label="Created since" type="datetime-local" step={1} value={localOf(filter.since)} error={faults.since} onWritten={moment("since")} />
        <Written name="Created until" label="Created until" type="datetime-local" step={1} value={localOf(filter.until)} error={faults.until} onWritten={moment("until")} />
        <Select
          label="Last attempt"
          placeholder="Any outcome"
          data={OUTCOMES.map((value) => ({ value, label: outcomeOf({ outcome: value, status: null }) }))}
          value={filter.outcome ?? null}
          error={faults.outcome}
          onChange={(outcome) => onChange({ outcome: outcome ?? undefined })}
          clearable
        />
        <Written
          name="Status code"
          label="Status code"
          placeholder="Any, for example 503"
          pattern="[1-9][0-9]{2}"
          inputMode="numeric"
          value={filter.status === undefined ? "" : String(filter.status)}
          error={faults.status}
          onWritten={(text) => onChange({ status: text === "" ? undefined : Number(text) })}
        />
        <Written name="Event type" label="Event type" placeholder="Any, for example order.placed" value={filter.type ?? ""} error={faults.type} onWritten={written("type")} />
        <Written name="Event id" label="Event id" placeholder="Any" value={filter.event ?? ""} error={faults.event} onWritten={written("event")} />
        <Select
          label="Client"
          placeholder="Every client"
          data={clients.data?.names ?? []}
          value={filter.client ?? null}
          error={faults.client}
          onChange={(client) => onChange({ client: client ?? undefined })}
          clearable
          searchable
        />
      </SimpleGrid>
    </Paper>
  );
}

function localOf(time: string | undefined): string {
  return time === undefined ? "" : localTime(new Date(time));
}
