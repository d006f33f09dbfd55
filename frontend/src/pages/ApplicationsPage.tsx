import { Select, Stack, Title } from "@mantine/core";
import { useState } from "react";
import { useSearchParams } from "react-router";

import { useZone } from "../api/zone";
import { ApplicationDetail } from "../features/applications/ApplicationDetail";
import { ApplicationGroups, GroupForm } from "../features/applications/ApplicationGroups";
import { type Application, type ApplicationGroup, type ApplicationState, STATES, useApplications } from "../features/applications/applications";
import { ReportForm } from "../features/applications/ReportForm";
import type { Column } from "../parts/DataTable";
import { Empty } from "../parts/Empty";
import { Listed } from "../parts/Listed";
import { Moment } from "../parts/Moment";
import { New } from "../parts/New";
import { PageHeader } from "../parts/PageHeader";
import { Side } from "../parts/Side";
import { State } from "../parts/State";
import { duration } from "../parts/text";

const COLUMNS: Column<Application>[] = [
  { title: "Application", cell: ({ name }) => name },
  { title: "State", cell: ({ state }) => <State state={state} /> },
  { title: "Since", cell: ({ since }) => <Moment at={since} /> },
  { title: "Reason", cell: ({ reason }) => reason, width: 320 },
  { title: "Last heartbeat", cell: ({ heartbeat_at: at }) => <Moment at={at} /> },
  { title: "Time-out", cell: ({ timeout_s: timeout }) => (timeout === null ? "–" : duration(timeout)) },
];

interface Asked {
  state?: string;
  application?: string;
}

/** States of applications and groups; the open application and the state filter are in the address. */
export function ApplicationsPage() {
  const zone = useZone();
  const [search, setSearch] = useSearchParams();
  const [group, setGroup] = useState<ApplicationGroup>();
  const state = STATES.find((one) => one === search.get("state"));
  const go = (next: Asked) => setSearch(searchOf(next));
  const close = () => go({ state });
  return (
    <>
      <PageHeader title="Applications" about="The states that clients report. Each change is an event of the stream eventhub.applications.">
        <New label="New group" variant="default">
          {(made) => <GroupForm zone={zone} onDone={made} />}
        </New>
        <New label="New application">
          {(made) => (
            <ReportForm
              zone={zone}
              onReported={(application) => {
                made();
                go({ state, application });
              }}
            />
          )}
        </New>
      </PageHeader>
      <Stack gap="lg">
        <Select
          aria-label="In the state"
          placeholder="Every state"
          data={STATES}
          value={state ?? null}
          onChange={(next) => go({ state: next ?? undefined })}
          clearable
          w={{ base: "100%", xs: 200 }}
        />
        <List zone={zone} state={state} onOpen={(application) => go({ state, application })} />
        <section>
          <Title order={2} mb="xs">
            Groups
          </Title>
          <ApplicationGroups zone={zone} onOpen={setGroup} />
        </section>
      </Stack>
      <Side of={search.get("application") ?? undefined} title={(name) => name} onClose={close}>
        {(name) => <ApplicationDetail key={name} zone={zone} name={name} onDeleted={close} />}
      </Side>
      <Side of={group} title={({ name }) => `Group ${name}`} onClose={() => setGroup(undefined)}>
        {(one) => <GroupForm key={one.name} zone={zone} group={one} onDone={() => setGroup(undefined)} />}
      </Side>
    </>
  );
}

function List({ zone, state, onOpen }: { zone: string; state: ApplicationState | undefined; onOpen: (name: string) => void }) {
  return (
    <Listed
      list={useApplications(zone, state)}
      label="Applications"
      columns={COLUMNS}
      keyOf={({ name }) => name}
      nameOf={({ name }) => `Application ${name}`}
      onOpen={({ name }) => onOpen(name)}
      minWidth={820}
      empty={
        state === undefined ? (
          <Empty
            title="No applications"
            about="A client reports the state of an application, and sends heartbeats. Each change of a state is an event:"
            command={`curl -X PUT ${location.origin}/v1/applications/till -H "Authorization: Bearer $KEY" \\
     --json '{"state": "degraded", "reason": "the printer is slow"}'`}
          />
        ) : (
          <Empty title={`No application is ${state}`} about="Remove the filter to see those in other states." />
        )
      }
    />
  );
}

function searchOf({ state, application }: Asked): URLSearchParams {
  const search = new URLSearchParams();
  if (state !== undefined) search.set("state", state);
  if (application !== undefined) search.set("application", application);
  return search;
}
