import { useSearchParams } from "react-router";

import { itemsOf } from "../api/pages";
import { OperatorDetail } from "../features/operators/OperatorDetail";
import { NewOperator } from "../features/operators/OperatorForm";
import { type Operator, useOperators } from "../features/operators/operators";
import type { Column } from "../parts/DataTable";
import { Empty } from "../parts/Empty";
import { Listed } from "../parts/Listed";
import { useMay } from "../parts/May";
import { Moment } from "../parts/Moment";
import { New } from "../parts/New";
import { PageHeader } from "../parts/PageHeader";
import { Side } from "../parts/Side";
import { State } from "../parts/State";

const COLUMNS: Column<Operator>[] = [
  { title: "Operator", cell: ({ name }) => name },
  { title: "Role", cell: ({ role }) => role },
  { title: "State", cell: (operator) => <OperatorState operator={operator} /> },
  { title: "Created", cell: ({ created_at: at }) => <Moment at={at} /> },
  { title: "Last login", cell: ({ last_login_at: at }) => (at === null ? "never" : <Moment at={at} />) },
];

/** The operators of the hub; the open one is in the address. */
export function OperatorsPage() {
  const may = useMay("admin");
  return (
    <>
      <PageHeader title="Operators" about="People who log in to this hub, in all zones, with their roles.">
        <New label="New operator" role="admin">
          {(made) => <NewOperator onMade={made} />}
        </New>
      </PageHeader>
      {may ? <Operators /> : <Empty title="Only for admins" about="Operators are managed by operators with the role admin." />}
    </>
  );
}

function Operators() {
  const [search, setSearch] = useSearchParams();
  const list = useOperators();
  const close = () => setSearch({}, { replace: true });
  const opened = itemsOf(list.data).find(({ name }) => name === search.get("operator"));
  return (
    <>
      <Listed
        list={list}
        label="Operators"
        columns={COLUMNS}
        keyOf={({ name }) => name}
        nameOf={({ name }) => `Operator ${name}`}
        onOpen={({ name }) => setSearch({ operator: name })}
        minWidth={640}
        empty={<Empty title="No operators" about="Create one with manage.py createoperator." />}
      />
      <Side of={opened} title={({ name }) => name} size="md" onClose={close}>
        {(operator) => <OperatorDetail key={`${operator.name} ${operator.changed}`} operator={operator} onDeleted={close} />}
      </Side>
    </>
  );
}

function OperatorState({ operator: { active, has_password: known } }: { operator: Operator }) {
  if (!active) return <State state="ended" label="deactivated" />;
  return known ? <State state="ok" label="active" /> : <State state="waiting" label="no password yet" />;
}
