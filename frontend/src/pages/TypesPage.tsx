import { Anchor } from "@mantine/core";
import { Link, useNavigate } from "react-router";

import { pathIn, useZone } from "../api/zone";
import type { Column } from "../parts/DataTable";
import { Empty } from "../parts/Empty";
import { Listed } from "../parts/Listed";
import { Moment } from "../parts/Moment";
import { New } from "../parts/New";
import { PageHeader } from "../parts/PageHeader";
import { NewType } from "../features/types/NewType";
import { type EventType, type TypeName, typePath, useTypes } from "../features/types/types";

/** What events may look like, where somebody has said it. */
export function TypesPage() {
  const zone = useZone();
  const navigate = useNavigate();
  const to = (name: TypeName) => pathIn(zone, typePath(name));
  const columns: Column<EventType>[] = [
    { title: "Type", cell: (one) => <Anchor component={Link} to={to(one)} size="sm" fw={600}>{one.type}</Anchor> },
    { title: "Domain", cell: ({ domain }) => domain },
    { title: "Newest version", right: true, cell: ({ version }) => version },
    { title: "Parent type", cell: ({ parent }) => parent ?? "–" },
  
    { title: "Declared", cell: ({ declared_at: at }) => <Moment at={at} /> },
  ];
  return (
    <>
      <PageHeader title="Types" about="What the attributes of events must look like, for those types that are declared.">
        <New label="New type" size="xl">
          {(made) => (
            <NewType
              zone={zone}
              onMade={(name) => {
                made();
                void navigate(to(name));
              }}
            />
          )}
        </New>
      </PageHeader>
      <Listed
        list={useTypes(zone)}
        label="Types"
        columns={columns}
        keyOf={({ domain, type }) => JSON.stringify([domain, type])}
        minWidth={820}
        empty={
          <Empty
            title="No type is declared yet"
            about="Events need no declaration. A declared type has a JSON Schema for its attributes, and events that do not fit are refused with the place of the fault. Each change is a new version, and the hub checks that old events stay readable:"
            command={`curl -X PUT ${location.origin}/v1/types/shop/order.placed -H "Authorization: Bearer $KEY" \\
     --json '{"schema": {"type": "object", "properties": {"total": {"type": "number", "minimum": 0}}, "required": ["total"]}}'`}
          />
        }
      />
    </>
  );
}
