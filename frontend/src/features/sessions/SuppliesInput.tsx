import { Textarea } from "@mantine/core";

import { errorAt } from "../../api/problem";
import type { SuppliedType } from "./sessions";

interface Props {
  value: string;
  error: unknown;
  onChange: (value: string) => void;
}

/** The declared types of a supplier session, one `domain::type` a line. */
export function SuppliesInput({ value, error, onChange }: Props) {
  return (
    <Textarea
      label="Supplies"
      description="The types that it emits, one on each line: domain::type, domain::Mail.* or domain::*."
      placeholder="shop::order.placed"
      autosize
      minRows={2}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      error={errorAt(error, "supplies")}
    />
  );
}

export function suppliesOf(text: string): SuppliedType[] {
  const lines = text.split("\n").map((line) => line.trim());
  return lines.filter((line) => line !== "").map(typeOf);
}

export function suppliesText(supplies: readonly SuppliedType[]): string {
  return supplies.map(textOfType).join("\n");
}

/** Parse `domain::type`. */
export function typeOf(text: string): SuppliedType {
  const at = text.indexOf("::");
  return at < 0 ? { domain: "", type: text } : { domain: text.slice(0, at), type: text.slice(at + 2) };
}

export function textOfType({ domain = "", type }: { domain?: string; type: string }): string {
  return domain === "" ? type : `${domain}::${type}`;
}
