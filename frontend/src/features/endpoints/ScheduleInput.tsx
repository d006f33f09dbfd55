import { ActionIcon, Button, Group, Input, NumberInput, SegmentedControl, Stack, Text } from "@mantine/core";
import { IconPlus, IconX } from "@tabler/icons-react";

import { DEFAULT_SCHEDULE, pause, summary } from "./retries";

interface Props {
  value: readonly number[] | null; // null: the hub's schedule
  onChange: (value: number[] | null) => void;
  error: string | undefined;
}

const KINDS = [
  { value: "default", label: "Default" },
  { value: "own", label: "Its own" },
];

/** The pauses before retries, with their total. */
export function ScheduleInput({ value, onChange, error }: Props) {
  const shown = value ?? DEFAULT_SCHEDULE;
  return (
    <Stack gap={8} role="group" aria-label="Retry schedule" align="start">
      <Input.Label component="div">Retry schedule</Input.Label>
      <Input.Description>The pauses before the first retry, the second and so on. Each varies by up to ±50 %.</Input.Description>
      <SegmentedControl
        aria-label="Retry schedule"
        data={KINDS}
        value={value === null ? "default" : "own"}
        onChange={(kind) => onChange(kind === "own" ? [...DEFAULT_SCHEDULE] : null)}
      />
      {value === null ? (
        <Text size="sm" c="dimmed">
          {shown.map(pause).join(", ")}
        </Text>
      ) : (
        <Pauses value={value} onChange={onChange} />
      )}
      <Text size="sm" fw={550} aria-live="polite">
        {summary(shown)}
      </Text>
      {error !== undefined && <Input.Error role="alert">{error}</Input.Error>}
    </Stack>
  );
}

function Pauses({ value, onChange }: { value: readonly number[]; onChange: (value: number[]) => void }) {
  const last = value.at(-1) ?? 5;
  return (
    <>
      {value.map((seconds, index) => (
        // a pause has no identity except its index
        <Group key={index} gap={8} wrap="nowrap">
          <NumberInput
            aria-label={`Pause before retry ${index + 1}, in seconds`}
            w={130}
            suffix=" s"
            thousandSeparator=" "
            min={1}
            allowDecimal={false}
            allowNegative={false}
            hideControls
            value={seconds}
            onChange={(next) => onChange(value.map((one, at) => (at === index ? Number(next) : one)))}
          />
          <Text size="sm" c="dimmed" className="number" w={92}>
            {pause(seconds)}
          </Text>
          <ActionIcon
            variant="subtle"
            color="gray"
            size={36}
            aria-label={`Remove pause ${index + 1}`}
            onClick={() => onChange(value.filter((_, at) => at !== index))}
          >
            <IconX size={16} />
          </ActionIcon>
        </Group>
      ))}
      <Button variant="default" size="compact-sm" leftSection={<IconPlus size={14} />} onClick={() => onChange([...value, last])}>
        Add a retry
      </Button>
    </>
  );
}
