/** Positions in a stream, and the starts of listeners. */

/** The position of the last event received: its segment's UUID and its sequence. */
export interface Cursor {
  readonly segment: string;
  readonly sequence: number;
}

/**
 * The start of a listener: after the last event, with the first that is still stored, after the
 * hub's last start, after a cursor, or at a time, which the hub resolves to a cursor.
 */
export type Start = "now" | "oldest" | "boot" | Cursor | Date;

const CURSOR = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}):([0-9]+)$/i;

/** Parse `<segment>:<sequence>`. Throws RangeError. */
export function parseCursor(text: string): Cursor {
  const found = CURSOR.exec(text);
  if (!found) throw new RangeError(`A cursor is <segment>:<sequence>, not ${JSON.stringify(text)}.`);
  return { segment: found[1]!.toLowerCase(), sequence: Number(found[2]) };
}

/** Return the form in query strings, and of the ids of server-sent events. */
export function cursorText(cursor: Cursor): string {
  return `${cursor.segment}:${cursor.sequence}`;
}

/** Return a start as a query parameter. */
export function startText(start: Start): string {
  if (typeof start === "string") return start;
  return start instanceof Date ? start.toISOString() : cursorText(start);
}

/** Return a start as the field `from` of a message. */
export function startField(start: Start): string | Cursor | { time: string } {
  if (typeof start === "string") return start;
  if (start instanceof Date) return { time: start.toISOString() };
  return { segment: start.segment, sequence: start.sequence };
}

/** Return whether a start is a cursor. */
export function isCursor(start: Start): start is Cursor {
  return typeof start === "object" && !(start instanceof Date);
}
