import { MultiSelect, Stack, TextInput } from "@mantine/core";
import { useState } from "react";

import { errorAt, Problem } from "../../api/problem";
import { itemsOf } from "../../api/pages";
import type { Column } from "../../parts/DataTable";
import { Empty } from "../../parts/Empty";
import { Form } from "../../parts/Form";
import { Listed } from "../../parts/Listed";
import { Moment } from "../../parts/Moment";
import { Removal } from "../../parts/Removal";
import { State } from "../../parts/State";
import { type ApplicationGroup, useApplicationGroups, useApplications, useDeleteGroup, useSetGroup } from "./applications";

const COLUMNS: Column<ApplicationGroup>[] = [
  { title: "Group", cell: ({ name }) => name },
  { title: "State", cell: ({ state }) => <State state={state} /> },
  { title: "Since", cell: ({ since }) => <Moment at={since} /> },
  { title: "Applications", cell: ({ applications }) => applications.join(", ") },
];

/** The groups of a zone with their derived states. */
export function ApplicationGroups({ zone, onOpen }: { zone: string; onOpen: (group: ApplicationGroup) => void }) {
  return (
    <Listed
      list={useApplicationGroups(zone)}
      label="Groups of applications"
      columns={COLUMNS}
      keyOf={({ name }) => name}
      nameOf={({ name }) => `Group ${name}`}
      onOpen={onOpen}
      minWidth={560}
      empty={<Empty title="No groups" about="A group is online if all its applications are, faulted if all are faulted or offline, and degraded otherwise. A change of its state is an event of its own." />}
    />
  );
}

interface Props {
  zone: string;
  group?: ApplicationGroup; // an existing one
  onDone: () => void;
}

/** Creates a group, or sets the members of one. */
export function GroupForm({ zone, group, onDone }: Props) {
  const save = useSetGroup(zone);
  const remove = useDeleteGroup(zone, group?.name ?? "");
  const known = itemsOf(useApplications(zone, undefined).data).map(({ name }) => name);
  const [name, setName] = useState(group?.name ?? "");
  const [applications, setApplications] = useState(group?.applications ?? []);
  const data = [...new Set([...known, ...applications])];
  return (
    <Stack gap="lg">
      <Form
        fields={["application_group", "applications"]}
        error={save.error}
        busy={save.isPending}
        action={group === undefined ? "Create" : "Save"}
        ready={name !== "" && applications.length > 0}
        onSubmit={() => save.mutate({ name, applications }, { onSuccess: onDone })}
      >
        {group === undefined && (
          <TextInput
            label="Name"
            placeholder="shop"
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            error={errorAt(save.error, "application_group")}
          />
        )}
        <MultiSelect
          label="Applications"
          data={data}
          value={applications}
          onChange={setApplications}
          searchable
          error={errorAt(save.error, "applications") ?? memberError(save.error)}
        />
      </Form>
      {group !== undefined && (
        <div>
          <Removal
            title={`Delete the group ${group.name}?`}
            about="Its applications remain."
            removal={remove}
            onConfirm={() => remove.mutate(undefined, { onSuccess: onDone })}
          />
        </div>
      )}
    </Stack>
  );
}

/** The error of one of the members, whose position is its index. */
function memberError(error: unknown): string | undefined {
  return error instanceof Problem && error.field?.startsWith("applications.") === true ? error.message : undefined;
}
