import { Paper } from "@mantine/core";
import type { ComponentProps, ReactNode } from "react";

import { itemsOf } from "../api/pages";
import { DataTable } from "./DataTable";
import { Loading } from "./Loading";
import { More } from "./More";
import { ProblemAlert } from "./ProblemAlert";

interface Pages<T> extends ComponentProps<typeof More> {
  data: { pages: { items: T[]; next: unknown }[] } | undefined;
  error: unknown;
  isError: boolean;
  isPending: boolean;
  refetch: () => unknown;
}

type Props<T> = Omit<ComponentProps<typeof DataTable<T>>, "items"> & {
  list: Pages<T>;
  empty: ReactNode; // instead of a table without rows
};

/** A table of a paged list, or its error, loading or empty state. */
export function Listed<T>({ list, empty, ...table }: Props<T>) {
  if (list.isError && list.data === undefined) return <ProblemAlert error={list.error} onRetry={() => void list.refetch()} />;
  if (list.isPending) return <Loading h={240} />;
  const items = itemsOf(list.data);
  if (items.length === 0 && !list.hasNextPage) return empty; // an empty page may have successors
  return (
    <Paper withBorder bg="var(--card)">
      <DataTable items={items} {...table} />
      <More {...list} />
    </Paper>
  );
}
