/** Attribute pairs as they are typed in, each with the JSON type of its value. */

export const KINDS = ["text", "number", "true", "false", "null"] as const;
export type Kind = (typeof KINDS)[number];
export type Value = string | number | boolean | null;

export interface Pair {
  name: string;
  kind: Kind;
  text: string; // of a text or a number
}

export const NEW_PAIR: Pair = { name: "", kind: "text", text: "" };

export type Attributes = Record<string, Value>;

/** What is wrong with one pair before it is sent. */
export function complaint(pair: Pair): string | undefined {
  if (pair.name.trim() === "") return "A name is missing.";
  if (pair.kind === "number" && (pair.text.trim() === "" || !Number.isFinite(Number(pair.text)))) return "Not a number.";
  return undefined;
}

export function attributesOf(pairs: readonly Pair[]): Attributes {
  return Object.fromEntries(pairs.map((pair) => [pair.name, valueOf(pair)]));
}

export function pairsOf(attributes: Record<string, unknown>): Pair[] {
  return Object.entries(attributes).map(([name, value]) => ({ name, kind: kindOf(value), text: String(value) }));
}

function valueOf({ kind, text }: Pair): Value {
  if (kind === "number") return Number(text);
  if (kind === "text") return text;
  return kind === "null" ? null : kind === "true";
}

function kindOf(value: unknown): Kind {
  if (typeof value === "number") return "number";
  if (typeof value === "boolean") return value ? "true" : "false";
  return value === null ? "null" : "text";
}
