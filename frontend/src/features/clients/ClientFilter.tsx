import { Select } from "@mantine/core";

import { useClientNames } from "./clients";

interface Props {
  zone: string;
  value: string | undefined;
  onChange: (client: string | undefined) => void;
  width?: number;
}

/** The filter of a list by the client that owns its items. */
export function ClientFilter({ zone, value, onChange, width = 200 }: Props) {
  const names = useClientNames(zone).data?.names ?? [];
  return (
    <Select
      aria-label="Of the client"
      placeholder="Every client"
      data={value === undefined || names.includes(value) ? names : [value, ...names]}
      value={value ?? null}
      onChange={(client) => onChange(client ?? undefined)}
      clearable
      searchable
      w={{ base: "100%", xs: width }}
    />
  );
}
