import { Radio, Select, SimpleGrid, Stack, Switch, TextInput } from "@mantine/core";

import { errorAt } from "../../api/problem";
import { AmountInput, BYTES, COUNT, TIMES } from "../../parts/AmountInput";
import { Section } from "../../parts/Section";
import { MatchingFields } from "./MatchingFields";
import type { Policy } from "./streams";

interface Props {
  policy: Policy;
  isNew: boolean; // a new stream: permanent fields can be chosen
  error: unknown;
  onChange: (change: Partial<Policy>) => void;
}

const DURABILITIES = [
  { value: "sync", label: "sync", description: "An emit is acknowledged once its events are on disk: they survive every crash." },
  {
    value: "async",
    label: "async",
    description: "An emit is acknowledged before it is on disk: faster, but a database crash may lose the last events. Listeners are notified.",
  },
  { value: "transient", label: "transient", description: "In memory, the newest events only. For listeners, not for callbacks." },
];

/** The fields of a policy, each with a description. */
export function PolicyFields({ policy, isNew, error, onChange }: Props) {
  const stored = policy.durability !== "transient";
  return (
    <>
      <Section title="Durability" about={isNew ? "When an emit is acknowledged. It cannot be changed later." : "It cannot be changed."}>
        <Radio.Group
          aria-label="Durability"
          value={policy.durability}
          onChange={(value) => onChange({ durability: value })}
          error={errorAt(error, "durability")}
        >
          <Stack gap="sm">
            {DURABILITIES.map((one) => (
              <Radio key={one.value} {...one} disabled={!isNew && one.value !== policy.durability} />
            ))}
          </Stack>
        </Radio.Group>
      </Section>
      {stored && <StateFields policy={policy} isNew={isNew} error={error} onChange={onChange} />}
      <RetentionFields policy={policy} error={error} onChange={onChange} />
      <SegmentFields policy={policy} isNew={isNew} error={error} onChange={onChange} />
      <Section title="Types">
        <Select
          label="Events of types that are not declared"
          description="Events of declared types are always validated."
          data={[
            { value: "accept", label: "are accepted" },
            { value: "refuse", label: "are refused" },
          ]}
          value={policy.undeclared}
          allowDeselect={false}
          onChange={(value) => onChange({ undeclared: value as Policy["undeclared"] })}
          error={errorAt(error, "undeclared")}
        />
      </Section>
      <MatchingFields policy={policy} isNew={isNew} error={error} onChange={onChange} />
    </>
  );
}

function StateFields({ policy, isNew, error, onChange }: Props) {
  return (
    <Section title="State">
      <Switch
        label="Keyed"
        description="The latest event of each key is retained when older segments are dropped. This cannot be changed later."
        checked={policy.keyed}
        disabled={!isNew}
        onChange={(event) => onChange({ keyed: event.currentTarget.checked, restate: event.currentTarget.checked && policy.restate })}
        error={errorAt(error, "keyed")}
      />
      <Switch
        label="Restate at each start"
        description="The latest event of each key is appended again when the hub starts. Requires a keyed stream."
        checked={policy.restate}
        disabled={!policy.keyed}
        onChange={(event) => onChange({ restate: event.currentTarget.checked })}
        error={errorAt(error, "restate")}
      />
    </Section>
  );
}

/** The retention of events. */
export function RetentionFields({ policy, error, onChange }: Omit<Props, "isNew">) {
  const stored = policy.durability !== "transient";
  return (
    <Section title="Retention" about="The oldest sealed segments beyond any of these limits are dropped.">
      <SimpleGrid cols={{ base: 1, sm: 3 }} spacing="md">
        <AmountInput label="Age" description="Since the segment was sealed." units={TIMES} value={policy.retain_age_s} onChange={(value) => onChange({ retain_age_s: value })} error={errorAt(error, "retain_age_s")} />
        <AmountInput label="Size" description="Of all its segments." units={BYTES} value={policy.retain_bytes} onChange={(value) => onChange({ retain_bytes: value })} error={errorAt(error, "retain_bytes")} />
        <AmountInput label="Count" description="Events in all." units={COUNT} value={policy.retain_events} onChange={(value) => onChange({ retain_events: value })} error={errorAt(error, "retain_events")} />
      </SimpleGrid>
      {stored && (
        <>
          <Select
            label="Segments that a durable cursor needs"
            description="Sessions, forwarders, pending callbacks and the archive have durable cursors."
            data={[
              { value: "keep", label: "is kept beyond the limits" },
              { value: "drop", label: "is dropped, and the gap is announced" },
            ]}
            value={policy.on_lag}
            allowDeselect={false}
            onChange={(value) => onChange({ on_lag: value as Policy["on_lag"] })}
            error={errorAt(error, "on_lag")}
          />
          <Switch
            label="Archive"
            description="Sealed segments are archived before they are dropped, and stay readable."
            checked={policy.archive}
            onChange={(event) => onChange({ archive: event.currentTarget.checked })}
            error={errorAt(error, "archive")}
          />
          <TextInput
            label="Hold"
            description="Reason why nothing may be dropped regardless of the limits, such as a lawsuit. Empty: no hold."
            value={policy.hold ?? ""}
            onChange={(event) => onChange({ hold: event.currentTarget.value || null })}
            error={errorAt(error, "hold")}
          />
        </>
      )}
    </Section>
  );
}

function SegmentFields({ policy, error, onChange }: Props) {
  const stored = policy.durability !== "transient";
  return (
    <Section title="Segments" about="A segment is sealed, and the next one opened, at the first of these limits.">
      <SimpleGrid cols={{ base: 1, sm: 3 }} spacing="md">
        <AmountInput required label="Events" description="In one segment." units={COUNT} value={policy.segment_events_max} onChange={(value) => onChange({ segment_events_max: value ?? undefined })} error={errorAt(error, "segment_events_max")} />
        <AmountInput required label="Bytes" description="In one segment." units={BYTES} value={policy.segment_bytes_max} onChange={(value) => onChange({ segment_bytes_max: value ?? undefined })} error={errorAt(error, "segment_bytes_max")} />
        {stored && (
          <AmountInput label="Time" description="Since it was opened." units={TIMES} value={policy.segment_age_s_max} onChange={(value) => onChange({ segment_age_s_max: value })} error={errorAt(error, "segment_age_s_max")} />
        )}
      </SimpleGrid>
    </Section>
  );
}
