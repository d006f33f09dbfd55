import { useNavigate } from "react-router";

import { pathIn } from "../../api/zone";
import type { Column } from "../../parts/DataTable";
import { Empty } from "../../parts/Empty";
import { Listed } from "../../parts/Listed";
import { Moment } from "../../parts/Moment";
import { useRuns } from "./jobs";
import { RunState } from "./RunState";
import type { JobName, Run } from "./types";
import { taken, TITLES, titleOf } from "./words";

const COLUMNS: Column<Run>[] = [
  { title: "Run", cell: ({ id }) => id },
  { title: "State", cell: (run) => <RunState run={run} /> },
  { title: "Asked", cell: ({ requested_at: at }) => <Moment at={at} /> },
  { title: "By", cell: ({ requested_by: by }) => by },
  { title: "Took", cell: (run) => (run.ended_at === null ? "–" : (taken(run) ?? "–")) },
  { title: "Summary", cell: (run) => <span title={saidOf(run)}>{saidOf(run)}</span>, width: 420 },
];

/** The runs of a job, the newest first. */
export function History({ zone, job }: { zone: string; job: JobName }) {
  const navigate = useNavigate();
  return (
    <Listed
      list={useRuns(job)}
      label={`Runs of ${TITLES[job]}`}
      columns={COLUMNS}
      keyOf={({ id }) => String(id)}
      nameOf={titleOf}
      onOpen={({ id }) => void navigate(pathIn(zone, `jobs/${job}/${id}`))}
      minWidth={860}
      empty={<Empty title="No run yet" about="Scheduled and requested runs are listed here, newest first." />}
    />
  );
}

function saidOf({ state, summary, phase, detail, attempt, retry_of: first }: Run): string {
  if (state === "running") return phase;
  if (state === "waiting" && first !== null) return `Attempt ${attempt}, a retry of run ${first}`;
  return summary || detail;
}
