import { Paper, Select, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "react-router";

import type { Loaded } from "../api/client";
import { pathIn, useZone } from "../api/zone";
import { Facts } from "../parts/Facts";
import { Form } from "../parts/Form";
import { Loading } from "../parts/Loading";
import { Moment } from "../parts/Moment";
import { PageHeader } from "../parts/PageHeader";
import { ProblemAlert } from "../parts/ProblemAlert";
import { Undisturbed } from "../parts/Undisturbed";
import { DefinitionFields, type Draft, EVOLUTIONS, FIELDS } from "../features/types/DefinitionFields";
import { type Definition, newestType, typePath, typeVersion } from "../features/types/types";
import { DeleteType, TypeDeletionBanner } from "../features/types/TypeDeletion";
import { useDraft } from "../features/types/useDraft";

/** One type with its versions: the newest can be changed into the next, older ones are shown. */
export function TypePage() {
  const zone = useZone();
  const navigate = useNavigate();
  const { domain = "", type = "", version: requested } = useParams();
  const name = { domain, type };
  const newest = useQuery(newestType(zone, name));
  const last = newest.data?.value.version;
  const version = requested ?? last;

  return (
    <>
      <PageHeader title={type} back={{ to: pathIn(zone, "types"), label: "Types" }} about={`Of the domain ${domain}.`}>
        {last !== undefined && (
          <Select
            aria-label="Version"
            w={200}
            data={versionsTo(last).map((one) => ({
              value: one,
              label: one === last ? `Version ${one}, newest` : `Version ${one}`,
            }))}
            value={version}
            allowDeselect={false}
            onChange={(chosen) => void navigate(pathIn(zone, `${typePath(name)}/${chosen ?? ""}`))}
          />
        )}
        {newest.data !== undefined && <DeleteType zone={zone} type={newest.data.value} />}
      </PageHeader>
      {newest.data !== undefined && <TypeDeletionBanner zone={zone} type={newest.data.value} />}
      {newest.isError && <ProblemAlert error={newest.error} onRetry={() => void newest.refetch()} />}
      {newest.isPending && <Loading h={480} />}
      {newest.data !== undefined &&
        (version === last ? (
          <Undisturbed key={`${domain} ${type}`} found={newest.data} reload={newest.refetch}>
            {(found, renew) => <Newest zone={zone} found={found} onRenew={renew} />}
          </Undisturbed>
        ) : (
          <Older zone={zone} name={name} version={version ?? "1"} />
        ))}
    </>
  );
}

interface NewestProps {
  zone: string;
  found: Loaded<Definition>;
  onRenew: () => void;
}

function Newest({ zone, found: { value, etag }, onRenew }: NewestProps) {
  const before = draftOf(value);
  const navigate = useNavigate();
  const { draft, edit, error, busy, declare } = useDraft(zone, before, etag);
  const changed = JSON.stringify(draft) !== JSON.stringify(before);
  const onDone = () => {
    onRenew();
    void navigate(pathIn(zone, typePath(value)));
  };
  return (
    <Stack gap="md">
      <About value={value} />
      <Paper withBorder bg="var(--card)" p="lg">
        <Form
          fields={FIELDS}
          error={error}
          busy={busy}
          action={`Declare version ${Number(value.version) + 1}`}
          ready={changed}
          onSubmit={() => declare(value, onDone)}
          onReload={onRenew}
        >
          <DefinitionFields draft={draft} error={error} onChange={edit} />
        </Form>
      </Paper>
    </Stack>
  );
}

function Older({ zone, name, version }: { zone: string; name: { domain: string; type: string }; version: string }) {
  const { data, error, isError, refetch } = useQuery(typeVersion(zone, name, version));
  if (isError && data === undefined) return <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading h={480} />;
  return (
    <Stack gap="md">
      <About value={data} />
      <Paper withBorder bg="var(--card)" p="lg">
        <Stack gap="md">
          <DefinitionFields key={version} draft={draftOf(data)} error={undefined} readOnly onChange={() => undefined} />
        </Stack>
      </Paper>
    </Stack>
  );
}

function About({ value }: { value: Definition }) {
  return (
    <Paper withBorder bg="var(--card)" p="md">
      <Facts
        facts={[
          ["Declared", <Moment key="at" at={value.declared_at} />],
          ["Parent type", value.parent ?? "none"],
          ["Evolution", EVOLUTIONS.find((one) => one.value === value.evolution)?.label ?? value.evolution],
          ["Never change", value.immutable.length === 0 ? "nothing" : <span key="fixed" className="mono">{value.immutable.join(", ")}</span>],
        ]}
      />
    </Paper>
  );
}

function draftOf({ schema, header, parent, evolution }: Definition): Draft {
  return {
    schema: JSON.stringify(schema, null, 2),
    header: header === null ? "" : JSON.stringify(header, null, 2),
    parent: parent ?? "",
    evolution: evolution === "none" ? "none" : "backward",
  };
}

/** Versions are numbered from 1 on; the newest first. */
function versionsTo(last: string): string[] {
  return Array.from({ length: Number(last) }, (_, index) => String(Number(last) - index));
}
