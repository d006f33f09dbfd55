import type { Column } from "../../parts/DataTable";
import { Moment } from "../../parts/Moment";
import { State } from "../../parts/State";
import type { Listener } from "./clients";

/** The listeners of a client, and what was delivered to each. */
export const LISTENER_COLUMNS: Column<Listener>[] = [
  {
    title: "Stream",
    cell: ({ stream, name }) => (
      <>
        <span className="mono">{stream}</span> {name}
      </>
    ),
  },
  { title: "Transport", cell: ({ transport, node }) => `${transport}, process ${node}` },
  { title: "Start", cell: ({ start, after }) => `${start}, after ${after.sequence.toLocaleString("en")}` },
  { title: "Delivered events", right: true, cell: ({ delivered_events: count }) => count.toLocaleString("en") },
  { title: "Delivered through", right: true, cell: ({ delivered_through: { sequence } }) => sequence.toLocaleString("en") },
  { title: "Started", cell: ({ started_at: at }) => <Moment at={at} /> },
  { title: "Ended", cell: (listener) => <Ended value={listener} /> },
];

function Ended({ value: { ended_at: at, end_reason: reason } }: { value: Listener }) {
  if (at === null) return <State state="ok" label="open" />;
  return (
    <>
      {reason}, <Moment at={at} />
    </>
  );
}
