import { Radio, Stack } from "@mantine/core";

import { errorAt } from "../../api/problem";

type Engine = "auto" | "local" | "spark";

interface Props {
  label: string;
  engines: Record<Engine, { label: string; description: string }>;
  value: string;
  onChange: (engine: string) => void;
  error: unknown;
}

/** What performs a run: the choice of the hub, one process, or Spark. */
export function EngineChoice({ label, engines, value, onChange, error }: Props) {
  return (
    <Radio.Group label={label} value={value} onChange={onChange} error={errorAt(error, "engine")}>
      <Stack gap="sm" mt="xs">
        {Object.entries(engines).map(([name, text]) => (
          <Radio key={name} value={name} {...text} />
        ))}
      </Stack>
    </Radio.Group>
  );
}
