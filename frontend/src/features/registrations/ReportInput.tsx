import { ActionIcon, Button, Group, Input, NativeSelect, SegmentedControl, Stack, TextInput } from "@mantine/core";
import { IconPlus, IconX } from "@tabler/icons-react";
import { useId } from "react";

import { PLACEHOLDERS } from "../../parts/pairs/pairs";
import classes from "../../parts/pairs/PairsInput.module.css";
import { NEW_ROW, type ReportRow, rowComplaint, SOURCES } from "./report";

interface Props {
  rows: ReportRow[] | undefined; // undefined: the whole event
  names: readonly string[]; // proposed names of attributes
  checked: boolean; // whether to report missing values
  onChange: (rows: ReportRow[] | undefined) => void;
  error?: string;
}

/** The report of a registration: the whole event, or chosen fields under chosen names. */
export function ReportInput({ rows, names, checked, onChange, error }: Props) {
  const list = useId();
  const change = (at: number, part: Partial<ReportRow>) => onChange(rows?.map((row, index) => (index === at ? { ...row, ...part } : row)));
  return (
    <Stack gap={6} role="group" aria-label="Report">
      <Input.Label component="div">Report</Input.Label>
      <Input.Description>What is delivered for a matching event: the whole event, or only the chosen fields.</Input.Description>
      <div>
        <SegmentedControl
          aria-label="Delivered fields"
          data={[
            { value: "whole", label: "The whole event" },
            { value: "some", label: "Some fields" },
          ]}
          value={rows === undefined ? "whole" : "some"}
          onChange={(kind) => onChange(kind === "whole" ? undefined : [NEW_ROW])}
        />
      </div>
      <datalist id={list}>
        {names.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      {rows?.map((row, index) => (
        // a row has no identity except its index
        <Group key={index} gap={6} wrap="nowrap" align="start">
          <NativeSelect
            className={classes.kind}
            aria-label={`Source of field ${index + 1}`}
            data={[...SOURCES]}
            value={row.source}
            onChange={(event) => change(index, { source: event.currentTarget.value as ReportRow["source"] })}
          />
          <TextInput
            className={classes.value}
            aria-label={`Path or value of field ${index + 1}`}
            placeholder={row.source === "field" ? "user" : PLACEHOLDERS[row.source]}
            list={row.source === "field" ? list : undefined}
            disabled={!["field", "text", "number"].includes(row.source)}
            value={["field", "text", "number"].includes(row.source) ? row.text : ""}
            error={checked ? rowComplaint(row) : undefined}
            onChange={(event) => change(index, { text: event.currentTarget.value })}
          />
          <TextInput
            className={classes.name}
            aria-label={`Name of field ${index + 1}`}
            placeholder={row.source === "field" ? "its own name" : "its name"}
            value={row.name}
            onChange={(event) => change(index, { name: event.currentTarget.value })}
          />
          <ActionIcon
            variant="subtle"
            color="gray"
            size={36}
            aria-label={`Remove field ${index + 1}`}
            onClick={() => onChange(rows.filter((_, at) => at !== index))}
          >
            <IconX size={16} />
          </ActionIcon>
        </Group>
      ))}
      {error !== undefined && <Input.Error>{error}</Input.Error>}
      {rows !== undefined && (
        <div>
          <Button variant="default" size="compact-sm" leftSection={<IconPlus size={14} />} onClick={() => onChange([...rows, NEW_ROW])}>
            Add a field
          </Button>
        </div>
      )}
    </Stack>
  );
}
