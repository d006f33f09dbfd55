import { Stack, Title } from "@mantine/core";
import { useSearchParams } from "react-router";

import { type Faults, isFaulty, numberAt } from "../api/address";
import { useZone } from "../api/zone";
import { NewPattern } from "../features/patterns/NewPattern";
import { NewPatternGroup } from "../features/patterns/NewPatternGroup";
import { PatternDetail } from "../features/patterns/PatternDetail";
import { PatternFilters } from "../features/patterns/PatternFilters";
import { PatternGroupDetail } from "../features/patterns/PatternGroupDetail";
import { languageText, type Pattern, type PatternFilter, type PatternGroup, STATUSES, usePatternGroups, usePatterns } from "../features/patterns/patterns";
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

interface Asked extends PatternFilter {
  pattern?: number;
  pattern_group?: number;
}

/** Patterns and their groups; the client and the open one are in the address. */
export function PatternsPage() {
  const zone = useZone();
  const [search, setSearch] = useSearchParams();
  const faults: Faults = {};
  const filter: PatternFilter = {
    client: search.get("client") || undefined,
    group: search.get("group") || undefined,
    status: STATUSES.find((one) => one === search.get("status")),
  };
  const pattern = numberAt(search, "pattern", faults);
  const group = numberAt(search, "pattern_group", faults);
  const go = (part: Asked) => setSearch(searchOf(part));
  const close = () => go(filter);
  return (
    <>
      <PageHeader title="Patterns" about="Registrations that wait for a combination of events; their outcomes are events.">
        <New label="New pattern group" variant="default">
          {(made) => (
            <NewPatternGroup
              zone={zone}
              onMade={(id) => {
                made();
                go({ ...filter, pattern_group: id });
              }}
            />
          )}
        </New>
        <New label="New pattern" size="xl">
          {(made) => (
            <NewPattern
              zone={zone}
              onMade={(id) => {
                made();
                go({ ...filter, pattern: id });
              }}
            />
          )}
        </New>
      </PageHeader>
      <Stack gap="lg">
        <PatternFilters zone={zone} filter={filter} onChange={go} />
        {isFaulty(faults) ? <FaultAlert faults={faults} search={search} /> : <Patterns zone={zone} filter={filter} onOpen={(id) => go({ ...filter, pattern: id })} />}
        <section>
          <Title order={2} mb="xs">
            Pattern groups
          </Title>
          <Groups zone={zone} client={filter.client} onOpen={(id) => go({ ...filter, pattern_group: id })} />
        </section>
      </Stack>
      <Side of={pattern} title={(id) => `Pattern ${id}`} size="xl" onClose={close}>
        {(id) => <PatternDetail key={id} zone={zone} id={id} onDeleted={close} />}
      </Side>
      <Side of={group} title={(id) => `Pattern group ${id}`} size="xl" onClose={close}>
        {(id) => <PatternGroupDetail key={id} zone={zone} id={id} onPatterns={go} onDeleted={close} />}
      </Side>
    </>
  );
}

interface ListProps {
  zone: string;
  onOpen: (id: number) => void;
}

function Patterns({ zone, filter, onOpen }: ListProps & { filter: PatternFilter }) {
  const isFiltered = Object.values(filter).some((one) => one !== undefined);
  return (
    <Listed
      list={usePatterns(zone, filter)}
      label="Patterns"
      columns={COLUMNS}
      keyOf={({ id }) => String(id)}
      nameOf={({ name }) => `Pattern ${name}`}
      onOpen={({ id }) => onOpen(id)}
      minWidth={820}
      empty={
        isFiltered ? (
          <Empty title="No such patterns" about="No pattern passes the filters." />
        ) : (
          <Empty
            title="No patterns"
            about="A pattern finds several events that belong together, such as an alarm that no all-clear follows. Create a pattern group first."
          />
        )
      }
    />
  );
}

function Groups({ zone, client, onOpen }: ListProps & { client: string | undefined }) {
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

function searchOf(asked: Asked): URLSearchParams {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(asked)) if (value !== undefined) search.set(name, String(value));
  return search;
}
