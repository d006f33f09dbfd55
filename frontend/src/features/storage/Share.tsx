import { Group, Progress, Text } from "@mantine/core";

const PERCENT = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 });

const COLOURS: Record<string, string> = { ok: "iris", low: "yellow", full: "red" };

interface Props {
  part: number;
  whole: number;
  tone?: string;
}

/** A share of a total as a bar and in percent. */
export function Share({ part, whole, tone }: Props) {
  const share = whole > 0 ? Math.min(1, part / whole) : 0;
  const colour = COLOURS[tone ?? (share > 0.95 ? "low" : "ok")];
  return (
    <Group gap={8} wrap="nowrap" mt={4}>
      <Progress value={share * 100} color={colour} size="sm" flex={1} aria-label={`${PERCENT.format(share)} taken`} />
      <Text size="xs" c="dimmed" className="number">
        {PERCENT.format(share)}
      </Text>
    </Group>
  );
}
