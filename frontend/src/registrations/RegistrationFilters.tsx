import { Group, Select } from "@mantine/core";

import type { Faults } from "../api/address";
import { useClientNames } from "../clients/clients";
import { EndpointSelect } from "../endpoints/EndpointSelect";
import { useStreamNames } from "../streams/streams";
import type { RegistrationFilter } from "./registrations";

interface Props {
  zone: string;
  filter: RegistrationFilter;
  faults: Faults;
  onChange: (filter: RegistrationFilter) => void;
}

export function RegistrationFilters({ zone, filter, faults, onChange }: Props) {
  const clients = useClientNames(zone);
  const streams = useStreamNames(zone);
  return (
    <Group gap="sm" mb="md">
      <Select
        aria-label="Of the client"
        placeholder="Every client"
        data={clients.data ?? []}
        value={filter.client ?? null}
        onChange={(client) => onChange({ ...filter, client: client ?? undefined })}
        clearable
        searchable
        w={{ base: "100%", xs: 200 }}
      />
      <Select
        aria-label="On the stream"
        placeholder="Every stream"
        data={streams.data ?? []}
        value={filter.stream ?? null}
        onChange={(stream) => onChange({ ...filter, stream: stream ?? undefined })}
        clearable
        searchable
        w={{ base: "100%", xs: 200 }}
      />
      <EndpointSelect
        zone={zone}
        aria-label="To the endpoint"
        placeholder="Every endpoint"
        value={filter.endpoint}
        error={"endpoint" in faults}
        onChange={(endpoint) => onChange({ ...filter, endpoint })}
        w={{ base: "100%", xs: 280 }}
      />
    </Group>
  );
}
