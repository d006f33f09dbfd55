import { Select } from "@mantine/core";
import { useSearchParams } from "react-router";

import { type Faults, isFaulty, numberAt } from "../api/address";
import { useZone } from "../api/zone";
import { useClientNames } from "../features/clients/clients";
import { NewTimer } from "../features/timers/NewTimer";
import { TimerDetail } from "../features/timers/TimerDetail";
import { scheduleText, type Timer, useTimers } from "../features/timers/timers";
import { TimerState } from "../features/timers/TimerState";
import type { Column } from "../parts/DataTable";
import { Empty } from "../parts/Empty";
import { FaultAlert } from "../parts/FaultAlert";
import { Listed } from "../parts/Listed";
import { Moment } from "../parts/Moment";
import { New } from "../parts/New";
import { PageHeader } from "../parts/PageHeader";
import { Side } from "../parts/Side";
import { whole } from "../parts/text";

const COLUMNS: Column<Timer>[] = [
  { title: "Timer", cell: ({ handle }) => handle },
  { title: "State", cell: ({ suspended }) => <TimerState suspended={suspended} /> },
  { title: "Client", cell: ({ client }) => client },
  { title: "Stream", cell: ({ stream }) => stream },
  { title: "Fires", cell: (timer) => scheduleText(timer) },
  { title: "Next time", cell: ({ suspended, next_at: at }) => (suspended ? "–" : <Moment at={at} />) },
  { title: "Fired", cell: ({ fired }) => whole(fired), right: true },
];

interface Asked {
  client?: string;
  timer?: number;
}

/** Timers and delayed events; the open timer and the client are in the address. */
export function TimersPage() {
  const zone = useZone();
  const [search, setSearch] = useSearchParams();
  const faults: Faults = {};
  const client = search.get("client") ?? undefined;
  const shown = numberAt(search, "timer", faults);
  const go = (part: Asked) => setSearch(searchOf(part));
  const close = () => go({ client });
  return (
    <>
      <PageHeader title="Timers" about="Events that the hub appends at a time, or repeatedly.">
        <New label="New timer">
          {(made) => (
            <NewTimer
              zone={zone}
              onMade={(timer) => {
                made();
                go({ client, timer });
              }}
            />
          )}
        </New>
      </PageHeader>
      <Clients zone={zone} value={client} onChange={(next) => go({ client: next })} />
      {isFaulty(faults) ? <FaultAlert faults={faults} search={search} /> : <List zone={zone} client={client} onOpen={(timer) => go({ client, timer })} />}
      <Side of={shown} title={(id) => `Timer ${id}`} onClose={close}>
        {(id) => <TimerDetail key={id} zone={zone} id={id} onDeleted={close} />}
      </Side>
    </>
  );
}

function Clients({ zone, value, onChange }: { zone: string; value: string | undefined; onChange: (client: string | undefined) => void }) {
  const clients = useClientNames(zone);
  return (
    <Select
      aria-label="Of the client"
      placeholder="Every client"
      data={clients.data?.names ?? []}
      value={value ?? null}
      onChange={(client) => onChange(client ?? undefined)}
      clearable
      searchable
      mb="md"
      w={{ base: "100%", xs: 200 }}
    />
  );
}

function List({ zone, client, onOpen }: { zone: string; client: string | undefined; onOpen: (id: number) => void }) {
  return (
    <Listed
      list={useTimers(zone, client)}
      label="Timers"
      columns={COLUMNS}
      keyOf={({ id }) => String(id)}
      nameOf={({ handle }) => `Timer ${handle}`}
      onOpen={({ id }) => onOpen(id)}
      minWidth={820}
      empty={
        client === undefined ? (
          <Empty
            title="No timers"
            about="A timer appends an event to a stream at a time, after a delay, at an interval or by a cron expression:"
            command={`curl ${location.origin}/v1/timers -H "Authorization: Bearer $KEY" \\
     --json '{"stream": "orders", "handle": "reminder", "after_s": 3600}'`}
          />
        ) : (
          <Empty title="This client has no timer" about="Remove the filter to see those of other clients." />
        )
      }
    />
  );
}

function searchOf({ client, timer }: Asked): URLSearchParams {
  const search = new URLSearchParams();
  if (client !== undefined) search.set("client", client);
  if (timer !== undefined) search.set("timer", String(timer));
  return search;
}
