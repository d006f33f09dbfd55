import { GroupDetail } from "./GroupDetail";
import { OwnedPage } from "./OwnedPage";
import { type RegistrationGroup, useGroups } from "../features/groups/groups";
import { GroupState } from "../features/groups/GroupState";
import { NewGroup } from "../features/groups/NewGroup";
import type { Column } from "../parts/DataTable";
import { Empty } from "../parts/Empty";
import { Moment } from "../parts/Moment";
import { whole } from "../parts/text";

const COLUMNS: Column<RegistrationGroup>[] = [
  { title: "Group", cell: ({ name }) => name },
  { title: "State", cell: ({ suspended }) => <GroupState suspended={suspended} /> },
  { title: "Client", cell: ({ client }) => client },
  { title: "Session", cell: ({ session, session_group: group }) => session ?? group ?? "–" },
  { title: "Registrations", cell: ({ registrations }) => whole(registrations), right: true },
  { title: "Created", cell: ({ created_at: at }) => <Moment at={at} /> },
];

/** Registrations that are suspended and resumed together. */
export function GroupsPage() {
  return (
    <OwnedPage
      kind="group"
      about="Registrations of a client that are suspended and resumed together."
      useList={useGroups}
      columns={COLUMNS}
      nameOf={({ name }) => name}
      minWidth={640}
      form={(zone, made) => <NewGroup zone={zone} onMade={made} />}
      detail={(zone, id, deleted) => <GroupDetail key={id} zone={zone} id={id} onEnded={deleted} />}
      empty={
        <Empty
          title="No groups"
          about="A registration may be in a group of its client. Suspending the group suspends all its registrations at one position of each stream: later events do not match until the group is resumed. Create a group, then choose it in a registration."
        />
      }
    />
  );
}
