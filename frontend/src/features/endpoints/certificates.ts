const DAY_MS = 86_400_000;
const WARNING_DAYS = 30;

/** How near the end of a certificate is: `ended`, `low` within 30 days, or `ok`. */
export function expiryOf(end: string, now: number): { state: "ended" | "low" | "ok"; text: string } {
  const left = Date.parse(end) - now;
  if (left <= 0) return { state: "ended", text: "expired" };
  const days = Math.floor(left / DAY_MS);
  if (days > WARNING_DAYS) return { state: "ok", text: "valid" };
  if (days === 0) return { state: "low", text: "expires today" };
  return { state: "low", text: `expires in ${days} day${days === 1 ? "" : "s"}` };
}
