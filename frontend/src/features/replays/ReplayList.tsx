import { useNavigate } from "react-router";

import { pathIn } from "../../api/zone";
import type { Column } from "../../parts/DataTable";
import { Empty } from "../../parts/Empty";
import { Listed } from "../../parts/Listed";
import { Moment } from "../../parts/Moment";
import { State } from "../../parts/State";
import { whole } from "../../parts/text";
import { type Replay, type ReplayFilter, useReplays } from "./replays";
import { selectionText, SOURCES } from "./words";

const COLUMNS: Column<Replay>[] = [
  { title: "Run", cell: ({ id }) => id },
  { title: "State", cell: ({ state }) => <State state={state} /> },
  { title: "Sends", cell: ({ source }) => SOURCES[source] },
  { title: "Endpoint", cell: ({ endpoint }) => endpoint },
  { title: "Selection", cell: (replay) => <span title={selectionText(replay)}>{selectionText(replay)}</span>, width: 260 },
  { title: "Examined", right: true, cell: ({ examined, total }) => (total === null ? whole(examined) : `${whole(examined)} of ${whole(total)}`) },
  { title: "Sent", right: true, cell: ({ written }) => whole(written) },
  { title: "Requested", cell: ({ requested_at: at }) => <Moment at={at} /> },
];

/** The replay runs, the newest first. */
export function ReplayList({ zone, filter }: { zone: string; filter: ReplayFilter }) {
  const navigate = useNavigate();
  return (
    <Listed
      list={useReplays(zone, filter)}
      label="Replays"
      columns={COLUMNS}
      keyOf={({ id }) => String(id)}
      nameOf={({ id }) => `Replay ${id}`}
      onOpen={({ id }) => void navigate(pathIn(zone, `replays/${id}`))}
      minWidth={940}
      empty={
        Object.values(filter).some((value) => value !== undefined) ? (
          <Empty title="No matching replays" about="Remove a filter to see more." />
        ) : (
          <Empty
            title="No replays"
            about="A replay sends events of the log, or the failed deliveries of an endpoint, again. It runs in the background at the rate that you choose, and is previewed before it starts."
          />
        )
      }
    />
  );
}
