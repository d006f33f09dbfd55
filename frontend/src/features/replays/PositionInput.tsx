import { Group, Input, SegmentedControl, TextInput } from "@mantine/core";
import { useId } from "react";

import { localTime, rfc3339 } from "../../parts/time";

/** A bound of a range: the end of the log, a time, or a cursor. */
export interface Position {
  kind: "end" | "time" | "cursor";
  time: string; // as `<input type=datetime-local>` has it
  cursor: string;
}

interface Props {
  label: string;
  description: string;
  end: string; // the label of the bound at the end of the log
  position: Position;
  onChange: (position: Position) => void;
  error: string | undefined;
}

export function PositionInput({ label, description, end, position, onChange, error }: Props) {
  const id = useId();
  const kinds = [
    { value: "end", label: end },
    { value: "time", label: "Time" },
    { value: "cursor", label: "Cursor" },
  ] as const;
  return (
    <Input.Wrapper label={label} labelElement="div" labelProps={{ id }} description={description} error={position.kind === "end" ? error : undefined}>
      <Group gap="sm" mt={4} align="start">
        <SegmentedControl aria-labelledby={id} data={[...kinds]} value={position.kind} onChange={(kind) => onChange({ ...position, kind })} />
        {position.kind === "time" && (
          <TextInput
            type="datetime-local"
            step={1}
            aria-label={`${label}: time`}
            value={position.time}
            onChange={(event) => onChange({ ...position, time: event.currentTarget.value })}
            error={error}
          />
        )}
        {position.kind === "cursor" && (
          <TextInput
            aria-label={`${label}: cursor`}
            placeholder="segment:sequence"
            value={position.cursor}
            onChange={(event) => onChange({ ...position, cursor: event.currentTarget.value })}
            error={error}
            flex="1 1 320px"
          />
        )}
      </Group>
    </Input.Wrapper>
  );
}

/** As it stands in the address: a time in RFC 3339, or a cursor. */
export function positionAt(search: URLSearchParams, name: string): Position {
  const text = search.get(name) ?? "";
  const time = /^\d{4}-\d\d-\d\dT/.test(text) && !Number.isNaN(Date.parse(text)) ? localTime(new Date(text)) : "";
  return { kind: text === "" || text === "oldest" ? "end" : time === "" ? "cursor" : "time", time, cursor: time === "" && text !== "oldest" ? text : "" };
}

/** As the API takes it; undefined: the end of the log. */
export function positionText({ kind, time, cursor }: Position): string | undefined {
  if (kind === "end") return undefined;
  return kind === "time" ? rfc3339(time) : cursor.trim();
}

export function isComplete({ kind, time, cursor }: Position): boolean {
  return kind === "end" || (kind === "time" ? time !== "" : cursor.trim() !== "");
}
