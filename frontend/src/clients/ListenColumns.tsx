import type { Column } from "../parts/DataTable";
import { Moment } from "../parts/Moment";
import { State } from "../parts/State";
import type { Listen } from "./clients";

/** What a client was told of a stream, each time that it began to listen. */
export const LISTEN_COLUMNS: Column<Listen>[] = [
  {
    title: "Stream",
    cell: ({ stream, listen }) => (
      <>
        <span className="mono">{stream}</span> {listen}
      </>
    ),
  },
  { title: "By", cell: ({ door, node }) => `${door}, process ${node}` },
  { title: "From", cell: ({ start, after }) => `${start}, after ${after.sequence.toLocaleString("en")}` },
  { title: "Told", right: true, cell: ({ events }) => events.toLocaleString("en") },
  { title: "Up to", right: true, cell: ({ through }) => through.sequence.toLocaleString("en") },
  { title: "Began", cell: ({ began_at: at }) => <Moment at={at} /> },
  { title: "Ended", cell: (listen) => <Ended value={listen} /> },
];

function Ended({ value: { ended_at: at, why } }: { value: Listen }) {
  if (at === null) return <State state="ok" label="open" />;
  return (
    <>
      {why}, <Moment at={at} />
    </>
  );
}
