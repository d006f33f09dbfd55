import { MultiSelect } from "@mantine/core";

import { errorAt } from "../../api/problem";
import { useStreamNames } from "../streams/streams";

interface Props {
  zone: string;
  description: string;
  placeholder?: string; // while none is chosen
  value: string[];
  onChange: (streams: string[]) => void;
  error: unknown;
}

export function StreamsInput({ zone, description, placeholder, value, onChange, error }: Props) {
  const names = useStreamNames(zone).data ?? [];
  return (
    <MultiSelect
      label="Streams"
      description={description}
      placeholder={value.length === 0 ? placeholder : undefined}
      data={[...new Set([...names, ...value])]}
      value={value}
      onChange={onChange}
      searchable
      error={errorAt(error, "streams")}
    />
  );
}
