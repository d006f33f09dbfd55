import { useGroupsOfZone } from "../groups/groups";
import { useOwners } from "../sessions/owners";
import { State } from "../../parts/State";
import type { Registration } from "./registrations";

/** The state of a registration: active, suspended, or suspended with its group or its session. */
export function RegistrationState({ zone, registration: { suspended, group, session, session_group: sessions, client } }: { zone: string; registration: Registration }) {
  const groups = useGroupsOfZone(zone).data ?? [];
  const owners = useOwners(zone);
  if (suspended) return <State state="held" label="suspended" />;
  const isOf = (one: { name: string; client: string; suspended: boolean }, name: string | null) => one.suspended && one.client === client && one.name === name;
  if (groups.some((one) => isOf(one, group) && one.session === session && one.session_group === sessions)) return <State state="held" label="group suspended" />;
  if (owners.data?.sessions.some((one) => isOf(one, session)) === true) return <State state="held" label="session suspended" />;
  if (owners.data?.groups.some((one) => isOf(one, sessions)) === true) return <State state="held" label="session group suspended" />;
  return <State state="enabled" label="active" />;
}
