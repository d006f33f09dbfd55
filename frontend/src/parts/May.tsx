import type { ReactNode } from "react";

import { includes, type Role, useRole } from "../api/session";

/** Whether the role of the operator who is signed in includes this one (docs/access.md). */
export function useMay(least: Role = "operator"): boolean {
  return includes(useRole(), least);
}

/** What only operators of a role may do, and so is offered to them only. */
export function May({ role, children }: { role?: Role; children: ReactNode }) {
  return useMay(role) ? children : null;
}
