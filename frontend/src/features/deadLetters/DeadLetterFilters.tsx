import { Group, Select, Stack } from "@mantine/core";

import type { Faults } from "../../api/address";
import { useClientNames } from "../clients/clients";
import { ENDED } from "../deliveries/deliveries";
import { StateChoice } from "../deliveries/StateChoice";
import { EndpointSelect } from "../endpoints/EndpointSelect";
import { useStreamNames } from "../streams/streams";
import type { DeadLetterFilter } from "./deadLetters";

interface Props {
  zone: string;
  filter: DeadLetterFilter;
  faults: Faults;
  onChange: (change: Partial<DeadLetterFilter>) => void;
}

export function DeadLetterFilters({ zone, filter, faults, onChange }: Props) {
  const clients = useClientNames(zone);
  const streams = useStreamNames(zone);
  return (
    <Stack gap="sm" mb="md">
      <Group gap="sm">
        <EndpointSelect
          zone={zone}
          aria-label="Endpoint"
          placeholder="Every endpoint"
          value={filter.endpoint}
          error={"endpoint" in faults}
          onChange={(endpoint) => onChange({ endpoint })}
          w={{ base: "100%", xs: 320 }}
        />
        <Select
          aria-label="Client"
          placeholder="Every client"
          data={clients.data?.names ?? []}
          value={filter.client ?? null}
          onChange={(client) => onChange({ client: client ?? undefined })}
          clearable
          searchable
          w={{ base: "100%", xs: 170 }}
        />
        <Select
          aria-label="Stream"
          placeholder="Every stream"
          data={streams.data ?? []}
          value={filter.stream ?? null}
          onChange={(stream) => onChange({ stream: stream ?? undefined })}
          clearable
          searchable
          w={{ base: "100%", xs: 170 }}
        />
      </Group>
      <StateChoice states={ENDED} value={filter.state ?? "dead_lettered"} faulty={"state" in faults} onChange={(state) => onChange({ state })} />
    </Stack>
  );
}
