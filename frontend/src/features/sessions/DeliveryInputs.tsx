import { NumberInput, Select, TagsInput } from "@mantine/core";

import { errorAt } from "../../api/problem";
import { isOrder, isQuality, type Options, type Order, ORDERS, QUALITIES, type Quality, qualityText, type SessionGroup } from "./sessions";
import { textOfType, typeOf } from "./SuppliesInput";

type Typed = number | string; // of a field for a number

export interface DeliveryValues {
  quality: Quality;
  order: Order;
  window: Typed;
  attempts: Typed; // empty: without end
  delay: Typed; // empty: the hub's default
  hold: Typed;
  types: string[];
  suppliers: string[];
}

export const DELIVERY_FIELDS = ["quality", "order", "window", "attempts_max", "order_options"];
const HOLDS: readonly Order[] = ["supplier", "timestamp", "causal"];

/** The values of a new session, or of an existing session or session group. */
export function deliveryOf(from?: Pick<SessionGroup, "quality" | "order" | "window" | "attempts_max" | "order_options">): DeliveryValues {
  const { occur_delay_ms: delay = "", hold_ms: hold = "", types = [], suppliers = [] } = from?.order_options ?? {};
  const { quality = "reliable", order = "fifo", window = 100 } = from ?? {};
  const attempts = from?.attempts_max ?? "";
  return { quality, order, window, attempts, delay, hold, types: types.map((one) => (typeof one === "string" ? one : textOfType(one))), suppliers };
}

/** The values as the fields of a request. Options that the order does not use are omitted. */
export function deliveryFields({ quality, order, window, attempts, delay, hold, types, suppliers }: DeliveryValues) {
  const options: Options = {
    ...(order === "timestamp" && delay !== "" && { occur_delay_ms: Number(delay) }),
    ...(HOLDS.includes(order) && hold !== "" && { hold_ms: Number(hold) }),
    ...(order === "type" && types.length > 0 && { types: types.map((one) => (one.includes("::") ? typeOf(one) : one)) }),
    ...(order === "supplier" && suppliers.length > 0 && { suppliers }),
  };
  return { quality, order, order_options: options, window: Number(window), attempts_max: attempts === "" ? null : Number(attempts) };
}

interface Props {
  values: DeliveryValues;
  error: unknown;
  onChange: (values: DeliveryValues) => void;
}

/** The settings of delivery of a consumer session or a session group. */
export function DeliveryInputs({ values, error, onChange }: Props) {
  const set = (part: Partial<DeliveryValues>) => onChange({ ...values, ...part });
  return (
    <>
      <Select
        label="Quality"
        description="Reliable: unacknowledged events are delivered again after a loss. Best effort: they are lost."
        data={QUALITIES.map((value) => ({ value, label: qualityText(value) }))}
        value={values.quality}
        allowDeselect={false}
        onChange={(quality) => isQuality(quality) && set({ quality })}
        error={errorAt(error, "quality")}
      />
      <Select
        label="Order"
        description="The order in which waiting events are delivered."
        data={ORDERS}
        value={values.order}
        allowDeselect={false}
        onChange={(order) => isOrder(order) && set({ order })}
        error={errorAt(error, "order")}
      />
      <OrderInputs values={values} error={error} set={set} />
      <NumberInput
        label="Window"
        description="The number of events that may be delivered and not acknowledged."
        min={1}
        allowDecimal={false}
        value={values.window}
        onChange={(window) => set({ window })}
        error={errorAt(error, "window")}
      />
      {values.quality === "reliable" && (
        <NumberInput
          label="Attempts"
          description="How often an event is handed out to pulls and to members that share. If it is not acknowledged after the last time, it is skipped, and an event of system says so."
          placeholder="Without end"
          min={1}
          allowDecimal={false}
          value={values.attempts}
          onChange={(attempts) => set({ attempts })}
          error={errorAt(error, "attempts_max")}
        />
      )}
    </>
  );
}

interface OrderProps {
  values: DeliveryValues;
  error: unknown;
  set: (part: Partial<DeliveryValues>) => void;
}

/** The options of the chosen order. */
function OrderInputs({ values: { order, delay, hold, types, suppliers }, error, set }: OrderProps) {
  return (
    <>
      {order === "type" && (
        <TagsInput
          label="Types in their order"
          description="Further types follow in alphabetical order. Enter adds one."
          placeholder="alarm.*"
          value={types}
          onChange={(next) => set({ types: next })}
          error={errorAt(error, "order_options.types")}
        />
      )}
      {order === "supplier" && (
        <TagsInput
          label="Clients in their order"
          description="Further clients follow in alphabetical order. Enter adds one."
          placeholder="web"
          value={suppliers}
          onChange={(next) => set({ suppliers: next })}
          error={errorAt(error, "order_options.suppliers")}
        />
      )}
      {order === "timestamp" && (
        <Milliseconds
          label="Delay"
          description="An event is delivered this long after its time; earlier ones have arrived by then."
          standard={1_000}
          value={delay}
          onChange={(next) => set({ delay: next })}
          error={errorAt(error, "order_options.occur_delay_ms")}
        />
      )}
      {HOLDS.includes(order) && (
        <Milliseconds
          label="Longest wait"
          description="How long an event waits for those that come before it."
          standard={order === "supplier" ? 0 : order === "causal" ? 1_000 : 60_000}
          value={hold}
          onChange={(next) => set({ hold: next })}
          error={errorAt(error, "order_options.hold_ms")}
        />
      )}
    </>
  );
}

interface MillisecondsProps {
  label: string;
  description: string;
  standard: number; // the hub's default
  value: Typed;
  onChange: (value: Typed) => void;
  error: string | undefined;
}

function Milliseconds({ standard, ...input }: MillisecondsProps) {
  return <NumberInput {...input} placeholder={standard.toLocaleString("en")} suffix=" ms" thousandSeparator="," min={0} allowDecimal={false} />;
}
