import { useMutation, useQueryClient } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import { DeletionBanner } from "../../parts/DeletionBanner";
import { ScheduleDeletion } from "../../parts/ScheduleDeletion";
import type { Definition } from "./types";

const ABOUT =
  "Until then events are checked as before, and it gets no new version and no subtype. Afterwards its new events are undeclared; stored events keep their version, which can still be read.";

interface Props {
  zone: string;
  type: Definition;
}

/** The button that deletes a type; none while a deletion is scheduled. */
export function DeleteType({ zone, type }: Props) {
  const queries = useQueryClient();
  const removal = useMutation({
    mutationFn: (grace_s: number) => done(api.DELETE("/v1/types/{domain}/{type}", { params: { path: pathOf(type), query: { zone, grace_s } } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["types", zone] }),
  });
  if (type.deletes_at !== null) return null;
  return <ScheduleDeletion noun="type" name={type.type} about={ABOUT} removal={removal} onConfirm={removal.mutateAsync} />;
}

/** The notice on the page of a type that is to be deleted. */
export function TypeDeletionBanner({ zone, type }: Props) {
  const queries = useQueryClient();
  const restoring = useMutation({
    mutationFn: () => done(api.POST("/v1/types/{domain}/{type}/restore", { params: { path: pathOf(type), query: { zone } } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["types", zone] }),
  });
  if (type.deletes_at === null) return null;
  return (
    <DeletionBanner
      noun="type"
      deletesAt={type.deletes_at}
      about="Afterwards its new events are undeclared."
      restoring={restoring}
      onRestore={() => restoring.mutate()}
    />
  );
}

function pathOf({ domain, type }: Definition) {
  return { domain, type };
}
