import { useState } from "react";
import { useSearchParams } from "react-router";

import { EngineChoice } from "./EngineChoice";
import { JobForm } from "./JobForm";
import { StreamChoice } from "./StreamChoice";

const BUILDERS = {
  auto: { label: "Automatic", description: "The faster one: the local builder up to some hundred thousand registrations." },
  local: { label: "The local builder", description: "One process, without Java." },
  spark: { label: "Spark", description: "For millions of registrations, on as many cores as there are." },
};

/** The form that rebuilds the match index of a stream. */
export function IndexForm({ zone }: { zone: string }) {
  const [search] = useSearchParams();
  const [stream, setStream] = useState(search.get("stream") ?? undefined);
  const [engine, setEngine] = useState("auto");
  return (
    <JobForm
      zone={zone}
      job="match_index"
      about="Rebuilds the index that matches the stream's events against very many registrations. Matching continues meanwhile."
      fields={["stream", "engine"]}
      params={stream === undefined ? undefined : { zone, stream, engine }}
    >
      {(error) => (
        <>
          <StreamChoice zone={zone} value={stream} onChange={setStream} error={error} />
          <EngineChoice label="Builder" engines={BUILDERS} value={engine} onChange={setEngine} error={error} />
        </>
      )}
    </JobForm>
  );
}
