import { Fragment, type ReactNode, useState } from "react";

import type { Loaded } from "../api/client";

interface Props<T> {
  found: Loaded<T>;
  reload: () => Promise<{ data: Loaded<T> | undefined }>;
  children: (found: Loaded<T>, renew: () => void) => ReactNode;
}

/**
 * What is edited does not change below the hands: the children get what was loaded when the editing began, and
 * are mounted anew with what it is now only when they call `renew`.
 */
export function Undisturbed<T>({ found, reload, children }: Props<T>) {
  const [kept, keep] = useState(found);
  const renew = () => void reload().then(({ data }) => data !== undefined && keep(data));
  return <Fragment key={kept.etag}>{children(kept, renew)}</Fragment>;
}
