import { NumberInput, SimpleGrid, Stack } from "@mantine/core";
import { useState } from "react";

import { errorAt } from "../../api/problem";
import { AmountInput, TIMES } from "../../parts/AmountInput";
import { Facts } from "../../parts/Facts";
import { whole } from "../../parts/text";
import { DEFAULT_SCHEDULE, DEFAULT_TIMEOUT_S, disablesAfter, LIMIT_NAMES, type Limits, pause, summary } from "./retries";
import { ScheduleInput } from "./ScheduleInput";
import { type Editing, type Found, Setting, SettingForm } from "./Setting";

/** When failed deliveries are retried, and how much an endpoint is called. */
export function Retries(endpoint: Found) {
  const limits = endpoint.found.value;
  const schedule = limits.retry_schedule ?? DEFAULT_SCHEDULE;
  return (
    <Setting {...endpoint} title="Retries and limits" about="The limits apply to all workers together." form={RetriesForm}>
      <Facts
        facts={[
          ["Retry schedule", limits.retry_schedule === null ? "default" : "its own"],
          ["Pauses", schedule.length === 0 ? "none" : schedule.map(pause).join(", ")],
          ["Attempts", summary(schedule)],
          ["Rate", limits.rate_limit === null ? "unlimited" : `${limits.rate_limit} requests per second`],
          ["Concurrency", limits.concurrency === null ? "unlimited" : `${whole(limits.concurrency)} requests at a time`],
          ["Timeout", `${limits.timeout_s ?? DEFAULT_TIMEOUT_S} s`],
          ["Disabled", disablesAfter(limits.disable_after_s)],
        ]}
      />
    </Setting>
  );
}

function RetriesForm({ endpoint, ...form }: Editing) {
  const { retry_schedule, rate_limit, concurrency, timeout_s, disable_after_s } = endpoint;
  const [limits, setLimits] = useState<Limits>({ retry_schedule, rate_limit, concurrency, timeout_s, disable_after_s });
  const { error } = form.change;
  const change = (part: Partial<Limits>) => setLimits({ ...limits, ...part });
  return (
    <SettingForm {...form} fields={LIMIT_NAMES} body={() => limits}>
      <Stack gap="lg">
        <ScheduleInput
          value={limits.retry_schedule}
          onChange={(schedule) => change({ retry_schedule: schedule })}
          error={errorAt(error, "retry_schedule")}
        />
        <SimpleGrid cols={{ base: 1, sm: 3 }} spacing="md">
          <Limit name="rate_limit" label="Rate" about="Requests per second." empty="unlimited" limits={limits} error={error} onChange={change} />
          <Limit name="concurrency" label="Concurrency" about="Requests at a time." empty="unlimited" limits={limits} error={error} onChange={change} />
          <Limit
            name="timeout_s"
            label="Timeout"
            about="Seconds to wait for a response."
            empty={`${DEFAULT_TIMEOUT_S}`}
            limits={limits}
            error={error}
            onChange={change}
          />
        </SimpleGrid>
        <AmountInput
          label="Disable after"
          description="Time of failures without a success. Empty: 5 days. 0: never."
          units={TIMES}
          required
          value={limits.disable_after_s}
          onChange={(seconds) => change({ disable_after_s: seconds })}
          error={errorAt(error, "disable_after_s")}
        />
      </Stack>
    </SettingForm>
  );
}

interface LimitProps {
  name: "rate_limit" | "concurrency" | "timeout_s";
  label: string;
  about: string;
  empty: string; // what holds without a number
  limits: Limits;
  error: unknown;
  onChange: (part: Partial<Limits>) => void;
}

function Limit({ name, label, about, empty, limits, error, onChange }: LimitProps) {
  return (
    <NumberInput
      label={label}
      description={about}
      placeholder={empty}
      min={0}
      allowNegative={false}
      allowDecimal={name === "rate_limit"}
      hideControls
      value={limits[name] ?? ""}
      onChange={(value) => onChange({ [name]: value === "" ? null : Number(value) })}
      error={errorAt(error, name)}
    />
  );
}
