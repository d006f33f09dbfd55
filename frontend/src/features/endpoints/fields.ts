import type { Endpoint } from "./endpoints";

export type Fields = Pick<Endpoint, (typeof FIELD_NAMES)[number]>;

export const FIELD_NAMES = ["url", "description", "format", "ordered", "order_by", "batch"] as const;
export const NEW_FIELDS: Fields = { url: "", description: "", format: "native", ordered: false, order_by: "", batch: null };

export interface FieldsProps {
  fields: Fields;
  error: unknown;
  onChange: (change: Partial<Fields>) => void;
}

/** Return the fields for a request; only an ordered endpoint has a key. */
export function bodyOf(fields: Fields): Fields {
  return fields.ordered ? fields : { ...fields, order_by: "" };
}
