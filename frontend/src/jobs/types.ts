import type { components } from "../api/schema";

type Schemas = components["schemas"];

/** The jobs that have pages, in their order. */
export const JOBS = ["audit", "backtest", "retention", "match_index"] as const;
export type JobName = (typeof JOBS)[number];

export type Jobs = Schemas["Jobs"];
export type Job = Schemas["Job"];
export type Run = Schemas["Run"];
export type OneRun = Schemas["RunShown"];
export type RunFile = Schemas["File"];
export type Applied = Schemas["Applied"];
export type Outcome = Schemas["Outcome"];

/** What shows the result of a run; `zone` is that of the page. */
export interface ResultProps {
  zone: string;
  run: OneRun;
}
