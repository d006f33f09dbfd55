import { State } from "../../parts/State";

export function GroupState({ suspended }: { suspended: boolean }) {
  return <State state={suspended ? "held" : "enabled"} label={suspended ? "suspended" : "active"} />;
}
