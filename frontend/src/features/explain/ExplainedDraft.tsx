import { useQuery } from "@tanstack/react-query";

import { Loading } from "../../parts/Loading";
import { ProblemAlert } from "../../parts/ProblemAlert";
import type { FilterRequest } from "../filters/draft";
import { explainedDraft, explainedRegistration } from "./explain";
import { Explained } from "./Explained";

interface Props {
  zone: string;
  stream: string;
  sequence: number;
}

/** Explains why a draft matches a stored event, or why not. */
export function ExplainedDraft({ zone, request, stream, sequence }: Props & { request: FilterRequest }) {
  const { data, error, isError, refetch } = useQuery(explainedDraft(zone, request, stream, sequence));
  if (isError) return <ProblemAlert error={error} onRetry={() => void refetch()} />;
  return data === undefined ? <Loading h={90} /> : <Explained explanation={data} who="The draft" />;
}

/** Explains why a registration matches a stored event, or why not. */
export function ExplainedRegistration({ zone, id, stream, sequence }: Props & { id: number }) {
  const { data, error, isError, refetch } = useQuery(explainedRegistration(zone, id, stream, sequence));
  if (isError) return <ProblemAlert error={error} onRetry={() => void refetch()} />;
  return data === undefined ? <Loading h={90} /> : <Explained explanation={data} who={`Registration ${id}`} />;
}
