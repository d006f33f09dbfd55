const WHOLE = new Intl.NumberFormat();
const RATE = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const DURATIONS: readonly (readonly [string, number])[] = [["day", 86_400], ["hour", 3_600], ["minute", 60], ["second", 1]];
const DIRECTIONS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const STATES: Record<string, string> = { dead_lettered: "dead-lettered", untried: "not tried yet" };
const COUNT_MAX = 100_000; // where the hub stops counting

export function whole(value: number): string {
  return WHOLE.format(value);
}

export function rate(perSecond: number): string {
  return perSecond >= 100 ? WHOLE.format(Math.round(perSecond)) : RATE.format(perSecond);
}

/** An amount of bytes in binary units, with three digits at most: `1.4 MiB`. */
export function bytes(value: number): string {
  const power = value < 1 ? 0 : Math.min(BYTE_UNITS.length - 1, Math.floor(Math.log2(value) / 10));
  const amount = value / 2 ** (10 * power);
  return `${amount >= 100 || power === 0 ? WHOLE.format(Math.round(amount)) : RATE.format(amount)} ${BYTE_UNITS[power] ?? ""}`;
}

/** A duration in its largest whole unit: `2 days`, `90 minutes`. */
export function duration(seconds: number): string {
  const [unit, size] = DURATIONS.find(([, length]) => seconds % length === 0) ?? ["second", 1];
  const amount = seconds / size;
  return `${WHOLE.format(amount)} ${unit}${amount === 1 ? "" : "s"}`;
}

/** Format a count that may be null after a timeout. */
export function counted(value: number | null): string {
  return value === null ? "not counted" : WHOLE.format(value);
}

/** Format a count of the overview: bounded, and null after a timeout. */
export function count(value: number | null): string {
  return value !== null && value >= COUNT_MAX ? `${WHOLE.format(COUNT_MAX)} or more` : counted(value);
}

/** A state of the API in words: `dead-lettered`. */
export function stateText(state: string): string {
  return STATES[state] ?? state;
}

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Escape bidirectional control characters in foreign text, as in JSON. */
export function visible(text: string): string {
  return text.replace(DIRECTIONS, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
