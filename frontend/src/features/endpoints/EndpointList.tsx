import type { Column } from "../../parts/DataTable";
import { Empty } from "../../parts/Empty";
import { Listed } from "../../parts/Listed";
import { Moment } from "../../parts/Moment";
import { type Endpoint, useEndpoints } from "./endpoints";
import { CertificateState } from "./Certificates";
import { CircuitState } from "./CircuitFigure";
import { EndpointState, Expiry, FailingSince } from "./EndpointState";

const COLUMNS: Column<Endpoint>[] = [
  { title: "Endpoint", cell: ({ id }) => id },
  { title: "Kind", cell: ({ kind }) => kind },
  { title: "URL", cell: ({ url }) => <span title={url}>{url}</span>, width: 230 },
  { title: "Client", cell: ({ client }) => client },
  { title: "State", cell: (endpoint) => <EndpointState endpoint={endpoint} /> },
  { title: "Circuit", cell: ({ circuit: { state } }) => <CircuitState state={state} /> },
  { title: "Failing since", cell: (endpoint) => <FailingSince endpoint={endpoint} /> },
  { title: "Certificate", cell: ({ tls }) => <CertificateState certificate={tls?.certificate ?? null} /> },
  { title: "Order", cell: ({ ordered, order_by: key }) => (ordered ? (key === "" ? "in order" : `by ${key}`) : "in parallel") },
  { title: "Expires", cell: ({ expires_at: at }) => <Expiry at={at} /> },
  { title: "Changed", cell: ({ changed_at: at }) => <Moment at={at} /> },
];

export function EndpointList({ zone, onOpen }: { zone: string; onOpen: (id: number) => void }) {
  return (
    <Listed
      list={useEndpoints(zone)}
      label="Endpoints"
      columns={COLUMNS}
      keyOf={({ id }) => String(id)}
      nameOf={({ id }) => `Endpoint ${id}`}
      onOpen={({ id }) => onOpen(id)}
      minWidth={1280}
      empty={
        <Empty
          title="No endpoints"
          about="An endpoint is a URL to which the hub posts events, signed with the endpoint's secret. A registration with a callback URL creates one. With a key of the client:"
          command={`curl ${location.origin}/v1/endpoints -H "Authorization: Bearer $KEY" \\
     --json '{"url": "https://example.org/hook", "ordered": true}'`}
        />
      }
    />
  );
}
