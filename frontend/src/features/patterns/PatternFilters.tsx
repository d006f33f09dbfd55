import { Group, Select } from "@mantine/core";

import { ClientFilter } from "../clients/ClientFilter";
import { type PatternFilter, STATUSES, usePatternGroupNames } from "./patterns";

interface Props {
  zone: string;
  filter: PatternFilter;
  onChange: (filter: PatternFilter) => void;
}

/** The filters of the list of patterns. */
export function PatternFilters({ zone, filter, onChange }: Props) {
  const groups = usePatternGroupNames(zone, filter.client).data ?? [];
  const { group } = filter;
  return (
    <Group gap="xs">
      <ClientFilter zone={zone} value={filter.client} onChange={(client) => onChange({ ...filter, client, group: undefined })} />
      <Select
        aria-label="Of the pattern group"
        placeholder="Every pattern group"
        data={group === undefined || groups.includes(group) ? groups : [group, ...groups]}
        value={group ?? null}
        onChange={(next) => onChange({ ...filter, group: next ?? undefined })}
        limit={200}
        clearable
        searchable
        w={{ base: "100%", xs: 260 }}
      />
      <Select
        aria-label="In the state"
        placeholder="Every state"
        data={STATUSES}
        value={filter.status ?? null}
        onChange={(next) => onChange({ ...filter, status: STATUSES.find((one) => one === next) })}
        clearable
        w={{ base: "100%", xs: 200 }}
      />
    </Group>
  );
}
