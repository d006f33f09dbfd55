import { Button, Group } from "@mantine/core";
import { IconPlayerPause, IconPlayerPlay } from "@tabler/icons-react";
import { useState } from "react";

import { type Faults, isFaulty, useAddress } from "../api/address";
import { useZone } from "../api/zone";
import { ActDetail } from "../features/auditTrail/ActDetail";
import { type Act, callerOf, searchOf, type TrailFilter, trailFilterOf, useTrail } from "../features/auditTrail/trail";
import { TrailFilters } from "../features/auditTrail/TrailFilters";
import { useLive } from "../features/auditTrail/useLive";
import type { Column } from "../parts/DataTable";
import { Empty } from "../parts/Empty";
import { FaultAlert } from "../parts/FaultAlert";
import { Listed } from "../parts/Listed";
import { Moment } from "../parts/Moment";
import { PageHeader } from "../parts/PageHeader";
import { Side } from "../parts/Side";
import { State } from "../parts/State";
import { visible } from "../parts/text";

const COLUMNS: Column<Act>[] = [
  { title: "Act", cell: ({ type }) => type },
  {
    title: "Resource",
    cell: ({ resource: { kind, name } }) => (
      <span title={visible(name)}>
        {kind} <span className="mono">{visible(name)}</span>
      </span>
    ),
    width: 220,
  },
  { title: "Caller", cell: (act) => <span title={visible(callerOf(act))}>{visible(callerOf(act))}</span>, width: 240 },
  { title: "Address", cell: ({ by }) => <span className="mono">{by.address ?? "–"}</span> },
  { title: "Zone", cell: ({ zone }) => zone ?? "the whole hub" },
  { title: "Time", cell: ({ at }) => <Moment at={at} /> },
];

/** Who changed what, newest first, as it happens; the filter and the open act are in the address. */
export function AuditTrailPage() {
  const zone = useZone();
  const [search, setSearch] = useAddress();
  const [listening, setListening] = useState(true);
  const link = useLive(zone, listening);
  const faults: Faults = {};
  const filter = trailFilterOf(search, faults);
  return (
    <>
      <PageHeader title="Audit trail" about="Who changed what in the zone and in the hub, from the stream system.">
        <Group gap="xs">
          <State state={link} />
          <Button
            size="compact-sm"
            variant="default"
            leftSection={listening ? <IconPlayerPause size={14} /> : <IconPlayerPlay size={14} />}
            onClick={() => setListening(!listening)}
          >
            {listening ? "Pause" : "Resume"}
          </Button>
        </Group>
      </PageHeader>
      <TrailFilters filter={filter} faults={faults} onChange={(part) => setSearch((latest) => searchOf({ ...trailFilterOf(latest, {}), ...part }))} />
      {isFaulty(faults) ? (
        <FaultAlert faults={faults} search={search} />
      ) : (
        <Acts zone={zone} filter={filter} onOpen={(act) => setSearch(() => searchOf(filter, act))} />
      )}
      <Side of={search.get("act") ?? undefined} title={(act) => `Act ${act}`} size="xl" onClose={() => setSearch(() => searchOf(filter), { replace: true })}>
        {(act) => <ActDetail key={act} zone={zone} sequence={act} />}
      </Side>
    </>
  );
}

function Acts({ zone, filter, onOpen }: { zone: string; filter: TrailFilter; onOpen: (act: string) => void }) {
  return (
    <Listed
      list={useTrail(zone, filter)}
      label="Acts"
      columns={COLUMNS}
      keyOf={({ sequence }) => String(sequence)}
      nameOf={({ sequence, type }) => `Act ${sequence}, ${type}`}
      onOpen={({ sequence }) => onOpen(String(sequence))}
      minWidth={980}
      empty={<Empty title="No acts" about="No retained event of system matches these filters." />}
    />
  );
}
