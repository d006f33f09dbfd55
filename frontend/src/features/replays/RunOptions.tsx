import { Checkbox, NumberInput, SimpleGrid } from "@mantine/core";

import { errorAt } from "../../api/problem";

export interface Options {
  rate: number;
  limit: number | undefined;
  newId: boolean;
}

export const OPTIONS: Options = { rate: 100, limit: undefined, newId: false };
const RATE_MAX = 5_000;

interface Props {
  options: Options;
  onChange: (options: Options) => void;
  error: unknown;
}

/** How a run sends: its rate, where it stops, and under which ids. */
export function RunOptions({ options, onChange, error }: Props) {
  return (
    <>
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <NumberInput
          label="Rate"
          description="Deliveries per second, at most."
          min={1}
          max={RATE_MAX}
          allowDecimal={false}
          thousandSeparator=" "
          value={options.rate}
          onChange={(rate) => onChange({ ...options, rate: Number(rate) })}
          error={errorAt(error, "rate")}
        />
        <NumberInput
          label="Stop at"
          description="The run ends after so many deliveries."
          placeholder="no limit"
          min={1}
          allowDecimal={false}
          thousandSeparator=" "
          value={options.limit ?? ""}
          onChange={(limit) => onChange({ ...options, limit: limit === "" ? undefined : Number(limit) })}
          error={errorAt(error, "limit")}
        />
      </SimpleGrid>
      <Checkbox
        label="New webhook-ids"
        description="Receivers handle the events again, also those that store handled ids."
        checked={options.newId}
        onChange={(event) => onChange({ ...options, newId: event.currentTarget.checked })}
      />
    </>
  );
}

/** As the API takes them. */
export function optionsOf({ rate, limit, newId }: Options): { rate: number; limit?: number; new_id: boolean } {
  return { rate, limit, new_id: newId };
}
