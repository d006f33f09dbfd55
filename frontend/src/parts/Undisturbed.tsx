import { Fragment, type ReactNode, useState } from "react";

import type { Loaded } from "../api/client";

interface Props<T> {
  found: Loaded<T>;
  reload: () => Promise<{ data: Loaded<T> | undefined }>;
  children: (found: Loaded<T>, renew: () => void) => ReactNode;
}

/**
 * Keeps a form stable while the resource changes: the children get the version that was loaded first, and are mounted
 * again with the current version only when they call `renew`.
 */
export function Undisturbed<T>({ found, reload, children }: Props<T>) {
  const [kept, keep] = useState(found);
  const renew = () => void reload().then(({ data }) => data !== undefined && keep(data));
  return <Fragment key={kept.etag}>{children(kept, renew)}</Fragment>;
}
