import { NumberInput, Select } from "@mantine/core";

import { errorAt } from "../../api/problem";
import { type Order, ORDERS, QUALITIES, type Quality } from "./sessions";

export interface DeliveryValues {
  quality: Quality;
  order: Order;
  window: number | string; // as typed
}

export const DEFAULTS: DeliveryValues = { quality: "reliable", order: "fifo", window: 100 };

interface Props {
  values: DeliveryValues;
  error: unknown;
  onChange: (values: DeliveryValues) => void;
}

/** The settings of delivery of a consumer session or a session group. */
export function DeliveryInputs({ values, error, onChange }: Props) {
  return (
    <>
      <Select
        label="Quality"
        description="Reliable: unacknowledged events are delivered again."
        data={QUALITIES.map((value) => ({ value, label: value.replace("_", " ") }))}
        value={values.quality}
        allowDeselect={false}
        onChange={(next) => onChange({ ...values, quality: QUALITIES.find((one) => one === next) ?? values.quality })}
        error={errorAt(error, "quality")}
      />
      <Select
        label="Order"
        description="In which held events are delivered."
        data={ORDERS}
        value={values.order}
        allowDeselect={false}
        onChange={(next) => onChange({ ...values, order: ORDERS.find((one) => one === next) ?? values.order })}
        error={errorAt(error, "order")}
      />
      <NumberInput
        label="Window"
        description="Events that may be delivered and not acknowledged."
        min={1}
        allowDecimal={false}
        value={values.window}
        onChange={(window) => onChange({ ...values, window })}
        error={errorAt(error, "window")}
      />
    </>
  );
}
