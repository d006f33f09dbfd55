import { Group, Select } from "@mantine/core";
import type { ComponentProps, ReactNode } from "react";
import { useSearchParams } from "react-router";

import { type Faults, isFaulty, numberAt } from "../api/address";
import { useZone } from "../api/zone";
import { ClientFilter } from "../features/clients/ClientFilter";
import { Empty } from "../parts/Empty";
import { FaultAlert } from "../parts/FaultAlert";
import { Listed } from "../parts/Listed";
import { New } from "../parts/New";
import { PageHeader } from "../parts/PageHeader";
import { Side } from "../parts/Side";
import { capital } from "../parts/text";

type List<T> = ComponentProps<typeof Listed<T>>;

interface Props<T> extends Pick<List<T>, "columns" | "minWidth" | "empty"> {
  kind: string; // `timer`: the parameter of the address that names the open one
  about: string;
  choice?: { name: string; label: string; none: string; data: { value: string; label: string }[] }; // a filter besides the client
  useList: (zone: string, client: string | undefined, chosen: string | undefined) => List<T>["list"];
  nameOf: (item: T) => string;
  form: (zone: string, onMade: (id: number) => void) => ReactNode;
  detail: (zone: string, id: number, onDeleted: () => void) => ReactNode;
}

interface Part {
  client?: string;
  id?: number;
  choose?: string; // empty: no choice
}

/** A list of things that clients own, by client; the filters and the open one are in the address. */
export function OwnedPage<T extends { id: number }>({
  kind,
  about,
  choice,
  useList,
  nameOf,
  form,
  detail,
  empty,
  ...table
}: Props<T>) {
  const zone = useZone();
  const [search, setSearch] = useSearchParams();
  const faults: Faults = {};
  const client = search.get("client") || undefined;
  const chosen = choice?.data.find(({ value }) => value === search.get(choice.name))?.value;
  const shown = numberAt(search, kind, faults);
  const list = useList(zone, client, chosen);
  const go = ({ client, id, choose = chosen }: Part) =>
    setSearch(searchOf({ client, [choice?.name ?? "filter"]: choose || undefined, [kind]: id?.toString() }));
  const noun = capital(kind);
  return (
    <>
      <PageHeader title={`${noun}s`} about={about}>
        <New label={`New ${kind}`}>
          {(made) =>
            form(zone, (id) => {
              made();
              go({ client, id });
            })
          }
        </New>
      </PageHeader>
      <Group mb="md" gap="xs">
        <ClientFilter zone={zone} value={client} onChange={(next) => go({ client: next })} />
        {choice && (
          <Select
            aria-label={choice.label}
            placeholder={choice.none}
            data={choice.data}
            value={chosen ?? null}
            onChange={(next) => go({ client, choose: next ?? "" })}
            clearable
            w={{ base: "100%", xs: 200 }}
          />
        )}
      </Group>
      {isFaulty(faults) ? (
        <FaultAlert faults={faults} search={search} />
      ) : (
        <Listed
          {...table}
          list={list}
          label={`${noun}s`}
          keyOf={({ id }) => String(id)}
          nameOf={(one) => `${noun} ${nameOf(one)}`}
          onOpen={({ id }) => go({ client, id })}
          empty={
            chosen !== undefined ? (
              <Empty title={`No such ${kind}`} about="Remove the filters to see the others." />
            ) : client === undefined ? (
              empty
            ) : (
              <Empty title={`This client has no ${kind}`} about="Remove the filter to see those of other clients." />
            )
          }
        />
      )}
      <Side of={shown} title={(id) => `${noun} ${id}`} onClose={() => go({ client })}>
        {(id) => detail(zone, id, () => go({ client }))}
      </Side>
    </>
  );
}

function searchOf(parts: Record<string, string | undefined>): URLSearchParams {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parts)) if (value !== undefined) search.set(name, value);
  return search;
}
