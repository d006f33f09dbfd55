import { Group, TagsInput } from "@mantine/core";

import { State } from "../../parts/State";

interface Props {
  value: string[];
  onChange: (groups: string[]) => void;
  error?: string;
}

/** The groups of a client; it receives events whose audience names one of them. */
export function GroupsInput({ value, onChange, error }: Props) {
  return (
    <TagsInput
      label="Groups"
      description="An event may name an audience: it is delivered to clients of these groups only. Enter adds one."
      placeholder={value.length === 0 ? "ops" : ""}
      value={value}
      onChange={onChange}
      error={error}
    />
  );
}

export function GroupNames({ names }: { names: readonly string[] }) {
  if (names.length === 0) return "none";
  return (
    <Group gap={6} wrap="nowrap" component="span">
      {names.map((name) => (
        <State key={name} state="channel" label={name} />
      ))}
    </Group>
  );
}
