import { ActionIcon, Button, Group, Input, Stack, TextInput } from "@mantine/core";
import { IconPlus, IconX } from "@tabler/icons-react";
import { useState } from "react";

import { errorAt } from "../../api/problem";
import { Facts } from "../../parts/Facts";
import { type HeaderRow, headersChange, rowsOf } from "./headers";
import { type Editing, type Found, Setting, SettingForm } from "./Setting";
import { IsSet, None } from "./IsSet";

/** The headers that the hub adds to callbacks; their values are not shown. */
export function Headers(endpoint: Found) {
  const headers = endpoint.found.value.headers ?? [];
  return (
    <Setting {...endpoint} title="Headers" about="Added to every callback. Values are not shown again." form={HeadersForm}>
      {headers.length === 0 ? (
        <None />
      ) : (
        <Facts facts={headers.map(({ name, digest }) => [name, <IsSet key={name} digest={digest} />])} />
      )}
    </Setting>
  );
}

function HeadersForm({ endpoint, ...form }: Editing) {
  const before = rowsOf(endpoint);
  const [rows, setRows] = useState(before.length === 0 ? [{ name: "", value: "", set: false }] : before);
  const { error } = form.change;
  const change = (at: number, part: Partial<HeaderRow>) => setRows(rows.map((row, index) => (index === at ? { ...row, ...part } : row)));
  const headers = headersChange(before, rows);
  return (
    <SettingForm {...form} fields={["headers"]} ready={Object.keys(headers).length > 0} body={() => ({ headers })}>
      <Stack gap={8} role="group" aria-label="Headers">
        {rows.map((row, index) => (
          // a row has no identity except its index
          <Group key={index} gap={6} wrap="nowrap" align="start">
            <TextInput
              aria-label={`Name of header ${index + 1}`}
              placeholder="x-api-key"
              flex="1 1 0"
              miw={0}
              readOnly={row.set}
              variant={row.set ? "filled" : "default"}
              value={row.name}
              onChange={(event) => change(index, { name: event.currentTarget.value })}
            />
            <TextInput
              aria-label={`Value of header ${index + 1}`}
              placeholder={row.set ? "set; empty: unchanged" : "value"}
              flex="2 1 0"
              miw={0}
              autoComplete="off"
              spellCheck={false}
              value={row.value}
              onChange={(event) => change(index, { value: event.currentTarget.value })}
            />
            <ActionIcon
              variant="subtle"
              color="gray"
              size={36}
              aria-label={`Remove header ${index + 1}`}
              onClick={() => setRows(rows.filter((_, at) => at !== index))}
            >
              <IconX size={16} />
            </ActionIcon>
          </Group>
        ))}
        {errorAt(error, "headers") !== undefined && <Input.Error role="alert">{errorAt(error, "headers")}</Input.Error>}
        <div>
          <Button
            variant="default"
            size="compact-sm"
            leftSection={<IconPlus size={14} />}
            onClick={() => setRows([...rows, { name: "", value: "", set: false }])}
          >
            Add a header
          </Button>
        </div>
      </Stack>
    </SettingForm>
  );
}
