import type { components } from "../../api/schema";

type Schemas = components["schemas"];

/** The jobs with pages, in order. */
export const JOBS = ["audit", "backtest", "retention", "match_index"] as const;
export type JobName = (typeof JOBS)[number];

export type Jobs = Schemas["Jobs"];
export type Job = Schemas["Job"];
export type Run = Schemas["Run"];
export type OneRun = Schemas["RunDetail"];
export type RunFile = Schemas["File"];
export type Applied = Schemas["Applied"];
export type Outcome = Schemas["Outcome"];

/** The props of a result; `zone` is the page's zone. */
export interface ResultProps {
  zone: string;
  run: OneRun;
}
