import { useState } from "react";

import { declarationOf, type Draft } from "./DefinitionFields";
import { type TypeName, useDeclare } from "./types";

/** A definition that is being written, and what is wrong with it. */
export function useDraft(zone: string, first: Draft, etag?: string) {
  const put = useDeclare(zone, etag);
  const [draft, setDraft] = useState(first);
  const [fault, setFault] = useState<unknown>();

  const edit = (part: Partial<Draft>) => {
    setDraft((before) => ({ ...before, ...part }));
    setFault(undefined);
    if (put.isError) put.reset();
  };
  const declare = (name: TypeName, onDone: () => void) => {
    try {
      put.mutate({ name, declaration: declarationOf(draft) }, { onSuccess: onDone });
    } catch (error) {
      setFault(error);
    }
  };
  return { draft, edit, error: fault ?? put.error, busy: put.isPending, declare };
}
