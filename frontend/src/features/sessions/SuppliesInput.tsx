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
  return lines
    .filter((line) => line !== "")
    .map((line) => {
      const at = line.indexOf("::");
      return at < 0 ? { domain: "", type: line } : { domain: line.slice(0, at), type: line.slice(at + 2) };
    });
}

export function suppliesText(supplies: readonly SuppliedType[]): string {
  return supplies.map(({ domain, type }) => `${domain}::${type}`).join("\n");
}
