import { Select } from "@mantine/core";

import { useOwners } from "./owners";

interface Props {
  zone: string;
  value: string | null;
  onChange: (group: string | null) => void;
  error: string | undefined;
}

/** The session group that a consumer session joins. */
export function GroupInput({ zone, value, onChange, error }: Props) {
  const groups = (useOwners(zone).data?.groups ?? []).map(({ name }) => name);
  return (
    <Select
      label="Session group"
      description="Optional. The session then shares the registrations of the group and its settings of delivery."
      placeholder="None"
      data={value === null || groups.includes(value) ? groups : [value, ...groups]}
      value={value}
      onChange={onChange}
      nothingFoundMessage="The zone has no such session group"
      clearable
      searchable
      error={error}
    />
  );
}
