import { Group, Select } from "@mantine/core";

import type { Faults } from "../../api/address";
import { EndpointSelect } from "../endpoints/EndpointSelect";
import { type ReplayFilter, STATES } from "./replays";

interface Props {
  zone: string;
  filter: ReplayFilter;
  faults: Faults;
  onChange: (change: Partial<ReplayFilter>) => void;
}

export function ReplayFilters({ zone, filter, faults, onChange }: Props) {
  return (
    <Group gap="sm" mb="md">
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
        aria-label="State"
        placeholder="Every state"
        data={STATES}
        value={filter.state ?? null}
        error={"state" in faults}
        onChange={(state) => onChange({ state: STATES.find((one) => one === state) })}
        clearable
        w={{ base: "100%", xs: 170 }}
      />
    </Group>
  );
}
