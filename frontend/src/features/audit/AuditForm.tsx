import { MultiSelect, Radio, Stack } from "@mantine/core";
import { useState } from "react";

import { errorAt } from "../../api/problem";
import { JobForm } from "../jobs/JobForm";
import { isBackwards, RangeInput, rangeOf } from "../jobs/RangeInput";
import { useStreamNames } from "../streams/streams";

/** The scope of an audit: the whole hub, a zone or some streams. */
export function AuditForm({ zone }: { zone: string }) {
  const [scope, setScope] = useState("hub");
  const [streams, setStreams] = useState<string[]>([]);
  const [range, setRange] = useState({ since: "", until: "" });
  const names = useStreamNames(zone).data ?? [];
  const within = scope === "zone" ? { zone, ...(streams.length === 0 ? {} : { streams }) } : {};
  return (
    <JobForm
      zone={zone}
      job="audit"
      about="Compares the log, the archive, the history of registrations and the deliveries, and proves that no event was lost, or reports which. It changes nothing."
      fields={["zone", "streams", "since", "until"]}
      params={isBackwards(range) ? undefined : { ...within, ...rangeOf(range) }}
    >
      {(error) => (
        <>
          <Radio.Group label="Scope" value={scope} onChange={setScope} error={errorAt(error, "zone")}>
            <Stack gap="sm" mt="xs">
              <Radio value="hub" label="The whole hub" />
              <Radio value="zone" label={`Only the zone ${zone}`} />
            </Stack>
          </Radio.Group>
          {scope === "zone" && (
            <MultiSelect
              label="Streams"
              placeholder={streams.length === 0 ? "all of the zone" : undefined}
              data={names}
              value={streams}
              onChange={setStreams}
              searchable
              clearable
              clearButtonProps={{ "aria-label": "All streams" }}
              error={errorAt(error, "streams")}
            />
          )}
          <RangeInput range={range} onChange={setRange} error={error} />
        </>
      )}
    </JobForm>
  );
}
