import { Autocomplete } from "@mantine/core";

interface Props {
  names: string[];
  value: string;
  onChange: (name: string) => void;
  error?: string;
}

/** Whose it shall be: a client that is there, or the name of a new one. */
export function ClientInput({ names, value, onChange, error }: Props) {
  const isNew = value !== "" && !names.includes(value);
  return (
    <Autocomplete
      label="Client"
      description={isNew ? "A new client of that name is made." : "Whose it is."}
      data={names}
      value={value}
      onChange={onChange}
      error={error}
    />
  );
}
