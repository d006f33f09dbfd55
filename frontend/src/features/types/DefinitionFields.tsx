import { Select, TextInput } from "@mantine/core";
import { lazy, Suspense } from "react";

import { Loading } from "../../parts/Loading";
import { errorAt, Problem } from "../../api/problem";
import type { Fault } from "./SchemaEditor";
import type { Declaration } from "./types";

// CodeMirror, which only these pages need
const SchemaEditor = lazy(async () => ({ default: (await import("./SchemaEditor")).SchemaEditor }));

/** A definition as it is typed in. */
export interface Draft {
  schema: string;
  header: string; // empty: none
  parent: string;
  evolution: Declaration["evolution"];
}

export const FIELDS = ["schema", "header", "parent", "evolution", "domain", "type"];

export const EVOLUTIONS = [
  { value: "backward" as const, label: "takes every event that was valid before" },
  { value: "none" as const, label: "may refuse what was valid before" },
];

interface Props {
  draft: Draft;
  error: unknown;
  readOnly?: boolean;
  onChange: (part: Partial<Draft>) => void;
}

/** The parts of a definition; what the hub refuses in a schema is shown at its place. */
export function DefinitionFields({ draft, error, readOnly = false, onChange }: Props) {
  const editor = (field: "schema" | "header", label: string, description: string) => (
    <Suspense fallback={<Loading h={field === "schema" ? 340 : 160} />}>
      <SchemaEditor
        label={label}
        description={description}
        value={draft[field]}
        readOnly={readOnly}
        rows={field === "schema" ? 14 : 4}
        faults={faultsOf(error, field)}
        onChange={(text) => onChange({ [field]: text })}
      />
    </Suspense>
  );
  return (
    <>
      {editor("schema", "Schema of the attributes", "JSON Schema. readOnly means: never changes for a key.")}
      {(!readOnly || draft.header !== "") && editor("header", "Schema of the header", "Of fields such as priority or node; empty: none.")}
      {!readOnly && (
        <>
          <TextInput
            label="Parent type"
            description="This type has its fields too; empty: none."
            placeholder="order"
            value={draft.parent}
            onChange={(event) => onChange({ parent: event.currentTarget.value })}
            error={errorAt(error, "parent") ?? (error instanceof Problem ? breaksOf(error, "parent")[0]?.text : undefined)}
          />
          <Select
            label="Evolution"
            description="What is checked against the version before."
            data={EVOLUTIONS}
            value={draft.evolution}
            allowDeselect={false}
            onChange={(value) => onChange({ evolution: value ?? "backward" })}
            error={errorAt(error, "evolution")}
          />
        </>
      )}
    </>
  );
}

/** The declaration, or a Problem at the field whose text is no JSON object. */
export function declarationOf(draft: Draft): Declaration {
  return {
    schema: objectOf(draft.schema, "schema"),
    evolution: draft.evolution,
    ...(draft.header.trim() === "" ? {} : { header: objectOf(draft.header, "header") }),
    ...(draft.parent === "" ? {} : { parent: draft.parent }),
  };
}

/** What is wrong with one of the schemas, each with its place in it. */
function faultsOf(error: unknown, field: "schema" | "header"): Fault[] {
  if (!(error instanceof Problem)) return [];
  const breaks = breaksOf(error, field === "schema" ? "attributes" : field);
  if (breaks.length > 0 || error.breaks.length > 0) return breaks;
  const text = errorAt(error, field);
  return text === undefined ? [] : [{ path: (error.field ?? "").slice(field.length), text }];
}

/** What of a new version would refuse old events: `attributes.total: is required now`, by its place in the schema. */
function breaksOf(error: Problem, top: string): Fault[] {
  return error.breaks.flatMap((line) => {
    const [at = "", ...rest] = line.split(": ");
    const below = at.slice(top.length);
    return at.startsWith(top) && /^[.[]|^$/.test(below) ? [{ path: pathOf(below), text: rest.join(": ") }] : [];
  });
}

/** Where a property, such as `.address.lines[]`, is described in its schema. */
function pathOf(property: string): string {
  const parts = property.replaceAll("[]", ".[]").split(".").filter((part) => part !== "");
  const places = new Map([["*", ".additionalProperties"], ["[]", ".items"]]);
  return parts.map((part) => places.get(part) ?? `.properties.${part}`).join("");
}

function objectOf(text: string, field: string): Record<string, unknown> {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : "";
    throw new Problem(400, { code: "malformed_json", detail: `No JSON yet: ${why}`, position: { field } });
  }
  if (typeof found !== "object" || found === null || Array.isArray(found)) {
    throw new Problem(400, { code: "invalid_field", detail: "A schema is a JSON object.", position: { field } });
  }
  return found as Record<string, unknown>;
}
