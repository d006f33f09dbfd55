import { NumberInput, SimpleGrid, Switch, TextInput } from "@mantine/core";

import { errorAt } from "../../api/problem";
import { AmountInput, BYTES } from "../../parts/AmountInput";
import type { Fields, FieldsProps } from "./fields";

const NEW_BATCH = { events_max: 100, bytes_max: 1_048_576, linger_ms: 200 };

/** In which order, and how many at a time, events are sent. */
export function DeliveryFields({ fields, error, onChange }: FieldsProps) {
  const { ordered, order_by: key, batch } = fields;
  return (
    <>
      <Switch
        label="In order"
        description="One event of a stream, or of a key, at a time; a retry delays the following ones."
        checked={ordered}
        onChange={(event) => onChange({ ordered: event.currentTarget.checked })}
      />
      {ordered && (
        <TextInput
          label="Ordered by"
          description="An attribute, or a field of the event such as @key: events with another value do not wait. Empty: the whole stream."
          placeholder="customer.id"
          styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
          spellCheck={false}
          value={key}
          onChange={(event) => onChange({ order_by: event.currentTarget.value })}
          error={errorAt(error, "order_by")}
        />
      )}
      <Switch
        label="In batches"
        description="Several events in one request."
        checked={batch !== null}
        onChange={(event) => onChange({ batch: event.currentTarget.checked ? NEW_BATCH : null })}
        error={batch === null ? errorAt(error, "batch") : undefined}
      />
      {batch !== null && <BatchFields batch={batch} error={error} onChange={(part) => onChange({ batch: { ...batch, ...part } })} />}
    </>
  );
}

type Batch = NonNullable<Fields["batch"]>;

function BatchFields({ batch, error, onChange }: { batch: Batch; error: unknown; onChange: (part: Partial<Batch>) => void }) {
  return (
    <SimpleGrid cols={{ base: 1, sm: 3 }} spacing="md">
      <NumberInput
        label="Events"
        description="At most, in one request."
        min={2}
        hideControls
        value={batch.events_max}
        onChange={(value) => onChange({ events_max: Number(value) })}
        error={errorAt(error, "batch.events_max")}
      />
      <AmountInput
        label="Size"
        description="Maximum size of the body of a request."
        units={BYTES}
        required
        value={batch.bytes_max}
        onChange={(value) => onChange({ bytes_max: value ?? NEW_BATCH.bytes_max })}
        error={errorAt(error, "batch.bytes_max")}
      />
      <NumberInput
        label="Linger"
        description="How long an event waits for others."
        suffix=" ms"
        min={0}
        hideControls
        value={batch.linger_ms}
        onChange={(value) => onChange({ linger_ms: Number(value) })}
        error={errorAt(error, "batch.linger_ms")}
      />
    </SimpleGrid>
  );
}
