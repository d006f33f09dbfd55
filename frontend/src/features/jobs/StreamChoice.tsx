import { Select } from "@mantine/core";

import { errorAt } from "../../api/problem";
import { useStreamNames } from "../streams/streams";

interface Props {
  zone: string;
  value: string | undefined;
  onChange: (stream: string) => void;
  error: unknown;
}

/** One stream of the zone, of those that have a history. */
export function StreamChoice({ zone, value, onChange, error }: Props) {
  const names = useStreamNames(zone).data ?? [];
  return (
    <Select
      label="Stream"
      placeholder="Choose a stream"
      data={names}
      value={value ?? null}
      onChange={(next) => next !== null && onChange(next)}
      allowDeselect={false}
      searchable
      nothingFoundMessage="No stream of that name"
      error={errorAt(error, "stream")}
    />
  );
}
