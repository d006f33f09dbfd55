import { Box } from "@mantine/core";
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
  useList: (zone: string, client: string | undefined) => List<T>["list"];
  nameOf: (item: T) => string;
  form: (zone: string, onMade: (id: number) => void) => ReactNode;
  detail: (zone: string, id: number, onDeleted: () => void) => ReactNode;
}

/** A list of things that clients own, by client; the client and the open one are in the address. */
export function OwnedPage<T extends { id: number }>({ kind, about, useList, nameOf, form, detail, empty, ...table }: Props<T>) {
  const zone = useZone();
  const [search, setSearch] = useSearchParams();
  const faults: Faults = {};
  const client = search.get("client") || undefined;
  const shown = numberAt(search, kind, faults);
  const list = useList(zone, client);
  const go = (part: { client?: string; id?: number }) => setSearch(searchOf(kind, part));
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
      <Box mb="md">
        <ClientFilter zone={zone} value={client} onChange={(next) => go({ client: next })} />
      </Box>
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
          empty={client === undefined ? empty : <Empty title={`This client has no ${kind}`} about="Remove the filter to see those of other clients." />}
        />
      )}
      <Side of={shown} title={(id) => `${noun} ${id}`} onClose={() => go({ client })}>
        {(id) => detail(zone, id, () => go({ client }))}
      </Side>
    </>
  );
}

function searchOf(kind: string, { client, id }: { client?: string; id?: number }): URLSearchParams {
  const search = new URLSearchParams();
  if (client !== undefined) search.set("client", client);
  if (id !== undefined) search.set(kind, String(id));
  return search;
}
