import { queryOptions, useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import { PAGING } from "../../api/pages";
import type { components } from "../../api/schema";

export type Connector = components["schemas"]["Connector"];
export type NewConnector = components["schemas"]["NewConnector"];
type Change = Partial<Pick<Connector, "enabled" | "on_refusal">>;
type State = Connector["state"];

const KIND = "connectors";
const REFRESH_MS = 5_000;
const STATES: State[] = ["running", "retrying", "stopped", "starting", "paused"];

export const FILTER = {
  name: "state",
  label: "State of connectors",
  none: "Every state",
  data: STATES.map((value) => ({ value, label: value })),
};
const DATABASE = "postgresql://user:password@host:5432/database";

/** What the form of a new connector shows by its kind; settings are JSON. */
export const KINDS: { value: NewConnector["kind"]; label: string; url: string; settings: string }[] = [
  {
    value: "outbox-polling",
    label: "Outbox table of PostgreSQL, by polling",
    url: DATABASE,
    settings: '{"table": "outbox", "order": "id", "body": "payload"}',
  },
  {
    value: "outbox-replication",
    label: "Outbox table of PostgreSQL, by replication",
    url: DATABASE,
    settings: '{"table": "outbox", "slot": "eventhub", "publication": "eventhub", "body": "payload"}',
  },
  {
    value: "kafka",
    label: "Topics of Kafka",
    url: "kafkas://user:password@host:9093,host:9093",
    settings: '{"topics": ["orders"], "start": "earliest"}',
  },
];

export function useConnectors(zone: string, client: string | undefined, chosen: string | undefined) {
  const state = STATES.find((one) => one === chosen);
  return useInfiniteQuery({
    queryKey: [KIND, zone, "pages", client, state],
    queryFn: ({ pageParam }) =>
      done(api.GET("/v1/connectors", { params: { query: { zone, client, state, after: pageParam, limit: 100 } } })),
    refetchInterval: REFRESH_MS,
    ...PAGING,
  });
}

export function oneConnector(zone: string, id: number) {
  return queryOptions({
    queryKey: [KIND, zone, "one", id],
    queryFn: () => done(api.GET("/v1/connectors/{connector}", { params: at(zone, id) })),
    refetchInterval: REFRESH_MS,
  });
}

export function useCreateConnector(zone: string) {
  return useWrite(zone, (body: NewConnector) => done(api.POST("/v1/connectors", { params: { query: { zone } }, body })));
}

export function useChangeConnector(zone: string, id: number) {
  return useWrite(zone, (body: Change) => done(api.PATCH("/v1/connectors/{connector}", { params: at(zone, id), body })));
}

export function useDeleteConnector(zone: string, id: number) {
  return useWrite(zone, () => done(api.DELETE("/v1/connectors/{connector}", { params: at(zone, id) })));
}

function at(zone: string, id: number) {
  return { path: { connector: String(id) }, query: { zone } };
}

function useWrite<Body, Answer>(zone: string, mutationFn: (body: Body) => Promise<Answer>) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn,
    onSuccess: () => void queries.invalidateQueries({ queryKey: [KIND, zone] }),
  });
}
