import { Stack, Title } from "@mantine/core";
import { useSearchParams } from "react-router";

import { type Faults, isFaulty, numberAt } from "../api/address";
import { useZone } from "../api/zone";
import { ClientFilter } from "../features/clients/ClientFilter";
import { NewPattern } from "../features/patterns/NewPattern";
import { NewPatternGroup } from "../features/patterns/NewPatternGroup";
import { PatternDetail } from "../features/patterns/PatternDetail";
import { PatternGroupDetail } from "../features/patterns/PatternGroupDetail";
import { languageText, type Pattern, type PatternGroup, usePatternGroups, usePatterns } from "../features/patterns/patterns";
import { PatternState } from "../features/patterns/PatternState";
import type { Column } from "../parts/DataTable";
import { Empty } from "../parts/Empty";
import { FaultAlert } from "../parts/FaultAlert";
import { Listed } from "../parts/Listed";
import { New } from "../parts/New";
import { PageHeader } from "../parts/PageHeader";
import { Side } from "../parts/Side";
import { State } from "../parts/State";
import { whole } from "../parts/text";

const COLUMNS: Column<Pattern>[] = [
  { title: "Pattern", cell: ({ name }) => name, width: 200 },
  { title: "State", cell: ({ status }) => <PatternState status={status} /> },
  { title: "Pattern group", cell: ({ group }) => group, width: 160 },
  { title: "Client", cell: ({ client }) => client, width: 140 },
  { title: "Language", cell: ({ language }) => languageText(language) },
  { title: "Matches", cell: ({ matches }) => whole(matches), right: true },
];
const GROUP_COLUMNS: Column<PatternGroup>[] = [
  { title: "Pattern group", cell: ({ name }) => name, width: 200 },
  { title: "Client", cell: ({ client }) => client, width: 140 },
  { title: "Streams", cell: ({ streams }) => streams.join(", "), width: 260 },
  { title: "State", cell: ({ fault }) => (fault === null ? <State state="running" label="running" /> : <State state="failed" label="stopped" />) },
  { title: "Patterns", cell: ({ patterns }) => whole(patterns), right: true },
  { title: "Suspended", cell: ({ suspended_patterns: count }) => whole(count), right: true },
  { title: "Consumed events", cell: ({ consumed }) => whole(consumed), right: true },
];

interface Asked {
  client?: string;
  pattern?: number;
  pattern_group?: number;
}

/** Patterns and their groups; the client and the open one are in the address. */
export function PatternsPage() {
  const zone = useZone();
  const [search, setSearch] = useSearchParams();
  const faults: Faults = {};
  const client = search.get("client") || undefined;
  const pattern = numberAt(search, "pattern", faults);
  const group = numberAt(search, "pattern_group", faults);
  const go = (part: Asked) => setSearch(searchOf(part));
  const close = () => go({ client });
  return (
    <>
      <PageHeader title="Patterns" about="Registrations that wait for a combination of events; their outcomes are events.">
        <New label="New pattern group" variant="default">
          {(made) => (
            <NewPatternGroup
              zone={zone}
              onMade={(id) => {
                made();
                go({ client, pattern_group: id });
              }}
            />
          )}
        </New>
        <New label="New pattern">
          {(made) => (
            <NewPattern
              zone={zone}
              onMade={(id) => {
                made();
                go({ client, pattern: id });
              }}
            />
          )}
        </New>
      </PageHeader>
      <Stack gap="lg">
        <ClientFilter zone={zone} value={client} onChange={(next) => go({ client: next })} />
        {isFaulty(faults) ? <FaultAlert faults={faults} search={search} /> : <Patterns zone={zone} client={client} onOpen={(id) => go({ client, pattern: id })} />}
        <section>
          <Title order={2} mb="xs">
            Pattern groups
          </Title>
          <Groups zone={zone} client={client} onOpen={(id) => go({ client, pattern_group: id })} />
        </section>
      </Stack>
      <Side of={pattern} title={(id) => `Pattern ${id}`} size="xl" onClose={close}>
        {(id) => <PatternDetail key={id} zone={zone} id={id} onDeleted={close} />}
      </Side>
      <Side of={group} title={(id) => `Pattern group ${id}`} size="xl" onClose={close}>
        {(id) => <PatternGroupDetail key={id} zone={zone} id={id} onDeleted={close} />}
      </Side>
    </>
  );
}

interface ListProps {
  zone: string;
  client: string | undefined;
  onOpen: (id: number) => void;
}

function Patterns({ zone, client, onOpen }: ListProps) {
  return (
    <Listed
      list={usePatterns(zone, client)}
      label="Patterns"
      columns={COLUMNS}
      keyOf={({ id }) => String(id)}
      nameOf={({ name }) => `Pattern ${name}`}
      onOpen={({ id }) => onOpen(id)}
      minWidth={820}
      empty={<Empty title="No patterns" about="A pattern finds several events that belong together, such as an alarm that no all-clear follows. Create a pattern group first." />}
    />
  );
}

function Groups({ zone, client, onOpen }: ListProps) {
  return (
    <Listed
      list={usePatternGroups(zone, client)}
      label="Pattern groups"
      columns={GROUP_COLUMNS}
      keyOf={({ id }) => String(id)}
      nameOf={({ name }) => `Pattern group ${name}`}
      onOpen={({ id }) => onOpen(id)}
      minWidth={820}
      empty={<Empty title="No pattern groups" about="The patterns of a group see the same events of its streams, in the same order." />}
    />
  );
}

function searchOf({ client, pattern, pattern_group: group }: Asked): URLSearchParams {
  const search = new URLSearchParams();
  if (client !== undefined) search.set("client", client);
  if (pattern !== undefined) search.set("pattern", String(pattern));
  if (group !== undefined) search.set("pattern_group", String(group));
  return search;
}
