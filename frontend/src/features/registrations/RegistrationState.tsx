import { useGroupsOfZone } from "../groups/groups";
import { State } from "../../parts/State";
import type { Registration } from "./registrations";

/** The state of a registration: active, suspended, or suspended by its group. */
export function RegistrationState({ zone, registration: { suspended, group, client } }: { zone: string; registration: Registration }) {
  const groups = useGroupsOfZone(zone).data ?? [];
  if (suspended) return <State state="held" label="suspended" />;
  const asleep = group !== null && groups.some((one) => one.client === client && one.name === group && one.suspended);
  return asleep ? <State state="held" label="group suspended" /> : <State state="enabled" label="active" />;
}
