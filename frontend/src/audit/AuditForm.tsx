import { MultiSelect, Radio, Stack } from "@mantine/core";
import { useState } from "react";

import { errorAt } from "../api/problem";
import { JobForm } from "../jobs/JobForm";
import { isBackwards, RangeInput, rangeOf } from "../jobs/RangeInput";
import { useStreamNames } from "../streams/streams";

/** What is audited: the whole hub, or some of it. */
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
      about="Reads the log, the archive, the history of registrations and the deliveries, and proves that nothing was lost, or names what was. It changes nothing."
      fields={["zone", "streams", "since", "until"]}
      params={isBackwards(range) ? undefined : { ...within, ...rangeOf(range) }}
    >
      {(error) => (
        <>
          <Radio.Group label="What is audited" value={scope} onChange={setScope} error={errorAt(error, "zone")}>
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
