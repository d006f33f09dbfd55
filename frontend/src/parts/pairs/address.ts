import type { Faults } from "../../api/address";
import { parseExactly } from "../../api/exact";
import { type Attributes, isValue } from "./pairs";

/** The pairs of an address. */
export function attributesAt(search: URLSearchParams, faults: Faults): Attributes {
  const text = search.get("attributes");
  if (text === null) return {};
  const found = parsed(text);
  if (isAttributes(found)) return found;
  faults.attributes = "Not a JSON object of texts, numbers, true, false and null.";
  return {};
}

function isAttributes(found: unknown): found is Attributes {
  if (typeof found !== "object" || found === null || Array.isArray(found)) return false;
  return Object.values(found).every(isValue);
}

function parsed(text: string): unknown {
  try {
    return parseExactly(text);
  } catch {
    return undefined;
  }
}
