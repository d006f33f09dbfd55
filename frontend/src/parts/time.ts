/** Times of `<input type=datetime-local>`, in the browser's time zone, and of the API, in UTC. */

const MINUTE_MS = 60_000;

export function localTime(date: Date): string {
  const shifted = new Date(date.getTime() - date.getTimezoneOffset() * MINUTE_MS);
  return shifted.toISOString().slice(0, 19);
}

/** Return the time in UTC; the current time if the text is not a time. */
export function rfc3339(local: string): string {
  const date = new Date(local);
  return (Number.isNaN(date.getTime()) ? new Date() : date).toISOString();
}
