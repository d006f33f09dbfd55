import { Group, Input, NativeSelect, NumberInput } from "@mantine/core";
import { useId, useState } from "react";

import classes from "./AmountInput.module.css";

export interface Unit {
  label: string;
  size: number;
}

export const BYTES: readonly Unit[] = [
  { label: "GiB", size: 2 ** 30 },
  { label: "MiB", size: 2 ** 20 },
  { label: "KiB", size: 2 ** 10 },
  { label: "bytes", size: 1 },
];
export const TIMES: readonly Unit[] = [
  { label: "days", size: 86_400 },
  { label: "hours", size: 3_600 },
  { label: "minutes", size: 60 },
  { label: "seconds", size: 1 },
];
export const COUNT: readonly Unit[] = [{ label: "", size: 1 }]; // a single unit is not shown

interface Props {
  label: string;
  description: string;
  units: readonly Unit[]; // the largest first
  value: number | null; // null: no limit
  required?: boolean;
  onChange: (value: number | null) => void;
  error?: string;
}

/** An amount in a chosen unit; empty: no limit. */
export function AmountInput({ label, description, units, value, required = false, onChange, error }: Props) {
  const [unit, setUnit] = useState(() => fitting(value, units));
  const id = useId();
  return (
    <Input.Wrapper id={id} label={label} description={description} error={error}>
      <Group gap={6} wrap="nowrap" mt={4}>
        <NumberInput
          id={id}
          className={classes.amount}
          placeholder={required ? "" : "no limit"}
          min={0}
          allowNegative={false}
          thousandSeparator=" "
          hideControls
          value={value === null ? "" : value / unit.size}
          onChange={(amount) => onChange(amount === "" ? null : Math.round(Number(amount) * unit.size))}
          error={error !== undefined}
        />
        {units.length > 1 && (
          <NativeSelect
            className={classes.unit}
            aria-label={`Unit of ${label}`}
            data={units.map((one) => one.label)}
            value={unit.label}
            onChange={(event) => {
              const next = units.find((one) => one.label === event.currentTarget.value) ?? unit;
              setUnit(next);
              if (value !== null) onChange(Math.round((value / unit.size) * next.size));
            }}
          />
        )}
      </Group>
    </Input.Wrapper>
  );
}

const NONE: Unit = { label: "", size: 1 };

/** The largest unit that shows the value whole. */
function fitting(value: number | null, units: readonly Unit[]): Unit {
  const fits = units.find((unit) => value !== null && value > 0 && value % unit.size === 0);
  return fits ?? units[0] ?? NONE;
}
