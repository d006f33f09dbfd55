import { NewTimer } from "../features/timers/NewTimer";
import { TimerDetail } from "../features/timers/TimerDetail";
import { KINDS, nameOf, scheduleText, type Timer, useTimers } from "../features/timers/timers";
import { TimerState } from "../features/timers/TimerState";
import type { Column } from "../parts/DataTable";
import { Empty } from "../parts/Empty";
import { Moment } from "../parts/Moment";
import { whole } from "../parts/text";
import { OwnedPage } from "./OwnedPage";

const COLUMNS: Column<Timer>[] = [
  { title: "Timer", cell: nameOf },
  { title: "State", cell: ({ suspended }) => <TimerState suspended={suspended} /> },
  { title: "Client", cell: ({ client }) => client },
  { title: "Stream", cell: ({ stream }) => stream },
  { title: "Fires", cell: (timer) => scheduleText(timer) },
  { title: "Next time", cell: ({ suspended, next_at: at }) => (suspended ? "–" : <Moment at={at} />) },
  { title: "Fired", cell: ({ fired }) => whole(fired), right: true },
];

/** Timers and delayed events. */
export function TimersPage() {
  return (
    <OwnedPage
      kind="timer"
      about="Events that the hub appends at a time, or repeatedly, and delayed events."
      choice={KINDS}
      useList={useTimers}
      columns={COLUMNS}
      nameOf={(timer) => timer.handle ?? `of ${nameOf(timer)}`}
      minWidth={820}
      form={(zone, made) => <NewTimer zone={zone} onMade={made} />}
      detail={(zone, id, deleted) => <TimerDetail key={id} zone={zone} id={id} onDeleted={deleted} />}
      empty={
        <Empty
          title="No timers"
          about="A timer appends an event to a stream at a time, after a delay, at an interval or by a cron expression:"
          command={`curl ${location.origin}/v1/timers -H "Authorization: Bearer $KEY" \\
     --json '{"stream": "orders", "handle": "reminder", "after_s": 3600}'`}
        />
      }
    />
  );
}
