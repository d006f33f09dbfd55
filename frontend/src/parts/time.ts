/** Times as `<input type=datetime-local>` has them, in the browser's place, and as the hub has them. */

const MINUTE_MS = 60_000;

export function localTime(date: Date): string {
  const shifted = new Date(date.getTime() - date.getTimezoneOffset() * MINUTE_MS);
  return shifted.toISOString().slice(0, 19);
}

/** In UTC; now for a text that is no time. */
export function rfc3339(local: string): string {
  const date = new Date(local);
  return (Number.isNaN(date.getTime()) ? new Date() : date).toISOString();
}
