import { ConnectorDetail } from "../features/connectors/ConnectorDetail";
import { type Connector, FILTER, useConnectors } from "../features/connectors/connectors";
import { ConnectorState } from "../features/connectors/ConnectorState";
import { NewConnector } from "../features/connectors/NewConnector";
import type { Column } from "../parts/DataTable";
import { Empty } from "../parts/Empty";
import { Moment } from "../parts/Moment";
import { whole } from "../parts/text";
import { OwnedPage } from "./OwnedPage";

const COLUMNS: Column<Connector>[] = [
  { title: "Connector", cell: ({ name }) => name },
  { title: "State", cell: ({ state }) => <ConnectorState state={state} /> },
  { title: "Error", cell: ({ error }) => error?.code ?? "–" },
  { title: "Client", cell: ({ client }) => client },
  { title: "Stream", cell: ({ stream }) => stream },
  { title: "Address", cell: ({ address }) => address },
  { title: "Read last", cell: ({ row_at: at }) => (at === null ? "–" : <Moment at={at} />) },
  { title: "Rows", cell: ({ rows }) => whole(rows), right: true },
  { title: "To be read", cell: ({ lag }) => (lag === null ? "–" : whole(lag)), right: true },
];

/** Connectors: what the hub reads from other systems. */
export function ConnectorsPage() {
  return (
    <OwnedPage
      kind="connector"
      about="Tables of other databases that the hub reads on its own: each row becomes an event."
      choice={FILTER}
      useList={useConnectors}
      columns={COLUMNS}
      nameOf={({ name }) => name}
      minWidth={1000}
      form={(zone, made) => <NewConnector zone={zone} onMade={made} />}
      detail={(zone, id, deleted) => <ConnectorDetail key={id} zone={zone} id={id} onDeleted={deleted} />}
      empty={
        <Empty
          title="No connectors"
          about="A connector reads the outbox table of a PostgreSQL database:"
          command={`curl ${location.origin}/v1/connectors -H "Authorization: Bearer $KEY" \\
     --json '{"name": "shop", "stream": "orders", "kind": "outbox-polling",
              "url": "postgresql://user:password@host/shop", "settings": {"table": "outbox"}}'`}
        />
      }
    />
  );
}
