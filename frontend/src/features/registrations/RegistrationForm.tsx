import { Button, Collapse, MultiSelect, Paper, Select, Stack } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconChevronDown, IconChevronUp } from "@tabler/icons-react";
import { type ReactNode, useState } from "react";

import { errorAt, Problem } from "../../api/problem";
import { type FilterRequest, filterRequestOf, draftOf, type FilterDraft } from "../filters/draft";
import { DryRun } from "../dryRun/DryRun";
import { FilterInput } from "../filters/FilterInput";
import { useNames } from "../filters/names";
import { useGroupsOfZone } from "../groups/groups";
import { Form } from "../../parts/Form";
import { CLIENT_ALONE, type Owner, ownerFields } from "../sessions/owners";
import { OwnerInput } from "../sessions/OwnerSelect";
import { useStreamNames } from "../streams/streams";
import { CallbackInput, type CallbackChoice } from "./CallbackInput";
import type { Registration } from "./registrations";
import { reportOf, rowComplaint, rowsOf } from "./report";
import { ReportInput } from "./ReportInput";

const FIELDS = [
  ...["client", "streams", "language", "filter", "domain", "type", "application", "attributes"],
  ...["session", "session_group", "group", "report", "endpoint", "callback"],
];

export interface RegistrationRequest extends FilterRequest {
  session?: string; // of a new one
  session_group?: string;
  streams: string[];
  group: string | null;
  report: Registration["report"];
}

/** The initial values of a new registration. */
export interface First {
  draft: FilterDraft;
  streams: string[];
}

interface Props {
  zone: string;
  client: string;
  first?: First;
  registration?: Registration; // to change it
  error: unknown;
  busy: boolean;
  action: string;
  ready?: boolean;
  onSubmit: (request: RegistrationRequest, callback: CallbackChoice) => void;
  onReload?: () => void;
  children?: ReactNode; // field for the client, in the form of a new one
  aside?: ReactNode;
}

/** The form of a registration: filter, report and callback. */
export function RegistrationForm({ zone, client, first, registration, error, onSubmit, children, ...form }: Props) {
  const streams = useStreamNames(zone).data ?? [];
  const [chosen, setChosen] = useState<string[]>(registration?.streams ?? first?.streams ?? []);
  const [draft, setDraft] = useState(() => first?.draft ?? draftOf(registration));
  const [fault, setFault] = useState<Problem>();
  const [chosenOwner, setOwner] = useState({ client, owner: CLIENT_ALONE });
  const owner = registration ?? (chosenOwner.client === client ? chosenOwner.owner : CLIENT_ALONE);
  const [group, setGroup] = useState(registration?.group ?? null);
  const [report, setReport] = useState(() => rowsOf(registration?.report));
  const [callback, setCallback] = useState<CallbackChoice>(choiceOf(registration));
  const [checked, setChecked] = useState(false);
  const names = useNames(zone, chosen[0]);
  const shown = fault ?? error;

  const submit = () => {
    setChecked(true);
    setFault(undefined);
    if (report?.some((row) => rowComplaint(row) !== undefined)) return;
    try {
      const request = filterRequestOf(draft);
      if (request !== undefined) onSubmit({ streams: chosen, ...request, ...(registration === undefined && ownerFields(owner)), group, report: reportOf(report) }, callback);
    } catch (wrong) {
      const detail = wrong instanceof SyntaxError ? `This is not JSON: ${wrong.message}` : String(wrong);
      setFault(new Problem(400, { code: "malformed_json", detail, position: { field: "filter" } }));
    }
  };

  return (
    <Form {...form} error={shown} fields={FIELDS} onSubmit={submit}>
      {children}
      {registration === undefined && (
        <OwnerInput
          zone={zone}
          client={client}
          value={owner}
          onChange={(next) => {
            setOwner({ client, owner: next });
            setGroup(null);
          }}
          error={errorAt(error, "session") ?? errorAt(error, "session_group")}
        />
      )}
      <MultiSelect
        label="Streams"
        description="Events of these streams are matched."
        data={[...new Set([...streams, ...chosen])]}
        value={chosen}
        onChange={setChosen}
        searchable
        error={errorAt(error, "streams")}
      />
      <FilterInput
        zone={zone}
        stream={chosen[0]}
        draft={draft}
        onChange={setDraft}
        checked={checked}
        error={shown}
        whose={registration === undefined ? { client, streams: chosen } : undefined}
      />
      <Tried zone={zone} draft={draft} streams={streams} chosen={chosen[0]} />
      <GroupSelect zone={zone} client={client} owner={owner} value={group} onChange={setGroup} error={errorAt(error, "group")} />
      <ReportInput rows={report} names={names} checked={checked} onChange={setReport} error={errorAt(error, "report")} />
      <CallbackInput
        zone={zone}
        client={client}
        choice={callback}
        urls={registration === undefined}
        onChange={setCallback}
        error={errorAt(error, "callback") ?? errorAt(error, "endpoint")}
      />
    </Form>
  );
}

interface TriedProps {
  zone: string;
  draft: FilterDraft;
  streams: readonly string[];
  chosen: string | undefined;
}

/** The dry run of the form's filter, on request. */
function Tried({ zone, draft, streams, chosen }: TriedProps) {
  const [open, { toggle }] = useDisclosure(false);
  const [stream, setStream] = useState<string>();
  return (
    <Stack gap="xs">
      <div>
        <Button
          variant="default"
          size="compact-sm"
          aria-expanded={open}
          rightSection={open ? <IconChevronUp size={14} /> : <IconChevronDown size={14} />}
          onClick={toggle}
        >
          Try it on stored events
        </Button>
      </div>
      <Collapse expanded={open}>
        {open && (
          <Paper withBorder p="md">
            <DryRun zone={zone} draft={draft} streams={streams} stream={stream ?? chosen} onStream={setStream} />
          </Paper>
        )}
      </Collapse>
    </Stack>
  );
}

interface GroupProps {
  zone: string;
  client: string;
  owner: Owner;
  value: string | null;
  onChange: (group: string | null) => void;
  error: string | undefined;
}

/** The groups of the same owner. */
function GroupSelect({ zone, client, owner, value, onChange, error }: GroupProps) {
  const isOwn = (one: Owner & { client: string }) => one.client === client && one.session === owner.session && one.session_group === owner.session_group;
  const groups = (useGroupsOfZone(zone).data ?? []).filter(isOwn).map(({ name }) => name);
  return (
    <Select
      label="Group"
      description="It is suspended and resumed with its group."
      placeholder="none"
      data={value === null || groups.includes(value) ? groups : [value, ...groups]}
      value={value}
      onChange={onChange}
      nothingFoundMessage={owner.session === null && owner.session_group === null ? "The client has no such group" : "The session has no such group"}
      clearable
      searchable
      error={error}
    />
  );
}

function choiceOf(registration: Registration | undefined): CallbackChoice {
  if (registration === undefined || registration.endpoint === null) return { kind: "none" };
  return { kind: "endpoint", endpoint: registration.endpoint };
}
