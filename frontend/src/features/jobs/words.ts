import { bytes, capital, duration, whole } from "../../parts/text";
import type { JobName, Run } from "./types";

const SECONDS = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
const FIGURE = new Intl.NumberFormat(undefined, { maximumFractionDigits: 3 });
const TIME = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", hour12: false });

export const TITLES: Record<JobName, string> = {
  audit: "Audit",
  backtest: "Back-test",
  match_index: "Match index",
  retention: "Retention",
};

export const VERDICTS = { ok: "ok", problems: "problems" } as const;

export function titleOf({ job, id }: Run): string {
  return `${job in TITLES ? TITLES[job as JobName] : job} ${id}`;
}

/** A run's duration so far. */
export function taken({ started_at: started, ended_at: ended }: Run): string | undefined {
  if (started === null) return undefined;
  const seconds = ((ended === null ? Date.now() : Date.parse(ended)) - Date.parse(started)) / 1000;
  return secondsText(seconds);
}

export function secondsText(seconds: number): string {
  if (seconds < 1) return "less than a second";
  if (seconds < 60) return `${SECONDS.format(seconds)} seconds`;
  const rest = Math.round(seconds) % 60;
  return duration(Math.round(seconds) - rest) + (rest === 0 ? "" : ` ${duration(rest)}`);
}

/** `late_events` as `Late events`; a unit at the end belongs to the value. */
export function named(name: string): string {
  return capital(name.replace(/(?<!_per)_(us|ms|s)$/, "").replaceAll("_", " "));
}

/** A value formatted by the unit at the end of its name. */
export function valued(name: string, value: unknown): string {
  if (value === null || value === undefined || value === "") return "–";
  if (typeof value === "number") {
    if (name.endsWith("_us")) return TIME.format(value / 1000);
    if (/(^|_)bytes$/.test(name)) return bytes(value);
    if (name.endsWith("_ms")) return `${FIGURE.format(value)} ms`;
    if (/(?<!_per)_s$/.test(name)) return secondsText(value);
    return Number.isInteger(value) ? whole(value) : FIGURE.format(value);
  }
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(value) ? TIME.format(new Date(value)) : value;
  return JSON.stringify(value);
}
