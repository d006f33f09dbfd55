/** Attribute pairs in a form, each with the JSON type of its value. */

import { exactNumber, isRaw } from "../../api/exact";

const NUMBER = /^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$/; // of JSON

export const KINDS = ["text", "number", "true", "false", "null"] as const;
export type Kind = (typeof KINDS)[number];

/** What a value may look like; nothing where none is typed in. */
export const PLACEHOLDERS: Record<Kind, string> = { text: "Basel", number: "42", true: "", false: "", null: "" };

export interface Pair {
  name: string;
  kind: Kind;
  text: string; // of a text or a number
}

export const NEW_PAIR: Pair = { name: "", kind: "text", text: "" };

export type Attributes = Record<string, unknown>;

/** Return the mistake in a pair, or undefined. */
export function complaint(pair: Pair): string | undefined {
  if (pair.name.trim() === "") return "A name is missing.";
  if (pair.kind === "number" && !NUMBER.test(pair.text.trim())) return "Not a number.";
  return undefined;
}

export function attributesOf(pairs: readonly Pair[]): Attributes {
  return Object.fromEntries(pairs.map((pair) => [pair.name, valueOf(pair)]));
}

export function pairsOf(attributes: Record<string, unknown>): Pair[] {
  return Object.entries(attributes).map(([name, value]) => ({ name, kind: kindOf(value), text: textOf(value) }));
}

/** Return whether a value is allowed for an attribute. */
export function isValue(value: unknown): boolean {
  return value === null || ["string", "number", "boolean"].includes(typeof value) || isRaw(value);
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function valueOf({ kind, text }: Pair): unknown {
  if (kind === "number") return exactNumber(text.trim());
  if (kind === "text") return text;
  return kind === "null" ? null : kind === "true";
}

function kindOf(value: unknown): Kind {
  if (typeof value === "number" || isRaw(value)) return "number";
  if (typeof value === "boolean") return value ? "true" : "false";
  return value === null ? "null" : "text";
}
