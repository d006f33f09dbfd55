import { Group, Select } from "@mantine/core";

import type { Faults } from "../../api/address";
import { ClientFilter } from "../clients/ClientFilter";
import { EndpointSelect } from "../endpoints/EndpointSelect";
import { useGroupsOfZone } from "../groups/groups";
import { OwnerSelect } from "../sessions/OwnerSelect";
import { useStreamNames } from "../streams/streams";
import { Written } from "../../parts/Written";
import type { RegistrationFilter } from "./registrations";

const STATES = [
  { value: "false", label: "active" },
  { value: "true", label: "suspended" },
];

const NARROW = { base: "100%", xs: 130 };

interface Props {
  zone: string;
  filter: RegistrationFilter;
  faults: Faults;
  onChange: (change: Partial<RegistrationFilter>) => void;
  onId: (id: number) => void;
}

export function RegistrationFilters({ zone, filter, faults, onChange, onId }: Props) {
  const streams = useStreamNames(zone);
  const groups = useGroupsOfZone(zone);
  return (
    <Group gap="sm" mb="md">
      <ClientFilter zone={zone} value={filter.client} onChange={(client) => onChange({ client })} width={170} />
      <Select
        aria-label="On the stream"
        placeholder="Every stream"
        data={streams.data ?? []}
        value={filter.stream ?? null}
        onChange={(stream) => onChange({ stream: stream ?? undefined })}
        clearable
        searchable
        w={{ base: "100%", xs: 170 }}
      />
      <EndpointSelect
        zone={zone}
        aria-label="To the endpoint"
        placeholder="Every endpoint"
        value={filter.endpoint}
        error={"endpoint" in faults}
        onChange={(endpoint) => onChange({ endpoint })}
        w={{ base: "100%", xs: 220 }}
      />
      <OwnerSelect
        zone={zone}
        client={filter.client}
        aria-label="Of the session"
        placeholder="Every session"
        value={{ session: filter.session ?? null, session_group: filter.session_group ?? null }}
        onChange={({ session, session_group: group }) => onChange({ session: session ?? undefined, session_group: group ?? undefined })}
        w={{ base: "100%", xs: 170 }}
      />
      <Select
        aria-label="Of the group"
        placeholder="Every group"
        data={[...new Set(groups.data?.map(({ name }) => name))]}
        value={filter.group ?? null}
        onChange={(group) => onChange({ group: group ?? undefined })}
        clearable
        searchable
        w={{ base: "100%", xs: 150 }}
      />
      <Select
        aria-label="In the state"
        placeholder="Every state"
        data={STATES}
        value={filter.suspended === undefined ? null : String(filter.suspended)}
        error={"suspended" in faults}
        onChange={(suspended) => onChange({ suspended: suspended === null ? undefined : suspended === "true" })}
        clearable
        w={{ base: "100%", xs: 150 }}
      />
      <Written name="Of the key" placeholder="Every key" value={filter.key ?? ""} onWritten={(key) => onChange({ key: key || undefined })} w={NARROW} />
      <Written name="Of the registration" placeholder="Registration id" pattern="[0-9]{1,15}" value="" onWritten={(id) => Number(id) > 0 && onId(Number(id))} w={NARROW} />
    </Group>
  );
}
