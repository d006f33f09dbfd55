import type { components } from "./schema";

export type ProblemBody = components["schemas"]["Problem"] & {
  first_available?: number | { sequence: number };
  current?: number | { sequence: number };
  breaks?: string[];
  line?: number;
  column?: number;
};

/** An error of the API, from its problem document (RFC 9457). */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly index: number | undefined;
  readonly field: string | undefined;
  readonly firstHeld: number | undefined; // of a `gap`: the first sequence that can still be read
  readonly current: number | undefined; // of `changed`: the sequence of the conflicting change
  readonly line: number | undefined; // in a text, from 1
  readonly column: number | undefined;
  readonly breaks: readonly string[]; // of a new version: each rule that would refuse old events

  constructor(status: number, body: Partial<ProblemBody>) {
    super(body.detail ?? `The hub answered with status ${status}.`);
    this.name = "Problem";
    this.status = status;
    this.code = body.code ?? "unknown";
    const { index, field } = body.position ?? {};
    this.index = index;
    this.field = field;
    this.firstHeld = sequenceOf(body.first_available);
    this.current = sequenceOf(body.current);
    this.line = body.line;
    this.column = body.column;
    this.breaks = body.breaks ?? [];
  }

  /** Return the problem for another field name, where a form's name differs from the request's. */
  at(field: string): Problem {
    return new Problem(this.status, { detail: this.message, code: this.code, position: { field }, line: this.line, column: this.column });
  }
}

function sequenceOf(place: number | { sequence: number } | undefined): number | undefined {
  return typeof place === "object" ? place.sequence : place;
}

/** The message for one field of a form, `attributes` for `attributes.total` too. */
export function errorAt(error: unknown, field: string): string | undefined {
  if (!(error instanceof Problem) || error.field === undefined) return undefined;
  return error.field === field || error.field.startsWith(`${field}.`) ? error.message : undefined;
}

/** Return the message of any error. */
export function textOf(error: unknown): string {
  if (error instanceof Problem) return error.message;
  if (error instanceof TypeError) return "The hub cannot be reached.";
  if (error instanceof DOMException && error.name === "TimeoutError") return "The hub does not answer.";
  return error instanceof Error ? error.message : String(error);
}
