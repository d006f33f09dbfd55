import { Anchor, Grid, Group, Paper, Stack, Title } from "@mantine/core";
import { useState } from "react";
import { Link, useSearchParams } from "react-router";

import { type Faults, isFaulty } from "../api/address";
import { pathIn, useZone } from "../api/zone";
import { FaultAlert } from "../parts/FaultAlert";
import { New } from "../parts/New";
import { PageHeader } from "../parts/PageHeader";
import { NewRegistration } from "../features/registrations/NewRegistration";
import { useStreamNames } from "../features/streams/streams";
import { draftAt, draftSearch } from "../features/filters/address";
import { type FilterRequest, filterRequestOf, type FilterDraft, PAIRS } from "../features/filters/draft";
import { DryRun } from "../features/dryRun/DryRun";
import { FilterInput } from "../features/filters/FilterInput";

/** A filter, run on stored events without a registration; the address holds the last run filter. */
export function FilterPage() {
  const [search] = useSearchParams();
  const faults: Faults = {};
  const first = draftAt(search, faults);
  return (
    <>
      {isFaulty(faults) ? (
        <>
          <Header />
          <FaultAlert faults={faults} search={search} />
        </>
      ) : (
        <Trying first={first} stream={search.get("stream") ?? undefined} />
      )}
    </>
  );
}

function Header({ children }: { children?: React.ReactNode }) {
  return (
    <PageHeader title="Filters" about="Write a filter, check its predicate form, and run it on stored events. Nothing is registered.">
      {children}
    </PageHeader>
  );
}

function Trying({ first, stream: requested }: { first: FilterDraft; stream: string | undefined }) {
  const zone = useZone();
  const [, setSearch] = useSearchParams();
  const [draft, setDraft] = useState(first);
  const [chosen, setStream] = useState(requested);
  const streams = useStreamNames(zone).data ?? [];
  const stream = chosen ?? streams[0];

  const keep = ({ attributes }: FilterRequest) => setSearch(searchOf(draft, stream, attributes), { replace: true });
  return (
    <>
      <Header>
        <New label="Register it" size="xl">
          {(made) => (
            <NewRegistration zone={zone} first={{ draft, streams: chosen === undefined ? [] : [chosen] }} onMade={made} />
          )}
        </New>
      </Header>
      <Grid gap="md">
        <Grid.Col span={{ base: 12, md: 6 }}>
          <Paper withBorder bg="var(--card)" p="lg" component="section" aria-label="The filter">
            <Stack gap="sm">
              <Title order={2}>The filter</Title>
              <FilterInput zone={zone} stream={stream} draft={draft} onChange={setDraft} checked={false} error={undefined} />
            </Stack>
          </Paper>
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 6 }}>
          <Paper withBorder bg="var(--card)" p="lg" component="section" aria-label="On stored events">
            <Stack gap="sm">
              <Group justify="space-between">
                <Title order={2}>On stored events</Title>
                <Anchor component={Link} to={`${pathIn(zone, "jobs/backtest")}?${searchOf(draft, stream).toString()}`} size="sm">
                  Back-test this filter
                </Anchor>
              </Group>
              <DryRun zone={zone} draft={draft} streams={streams} stream={stream} onStream={setStream} onRun={keep} />
            </Stack>
          </Paper>
        </Grid.Col>
      </Grid>
    </>
  );
}

function searchOf(draft: FilterDraft, stream: string | undefined, attributes: FilterRequest["attributes"] = attributesIn(draft)): URLSearchParams {
  const search = draftSearch(draft, attributes);
  if (stream !== undefined) search.set("stream", stream);
  return search;
}

function attributesIn(draft: FilterDraft): FilterRequest["attributes"] {
  return draft.language === PAIRS ? filterRequestOf(draft)?.attributes : undefined;
}
