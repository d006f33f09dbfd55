import { Anchor, SimpleGrid, Stack, Text } from "@mantine/core";
import { Link } from "react-router";

import { pathIn } from "../../api/zone";
import { secondsText } from "../jobs/words";
import { type Column, DataTable } from "../../parts/DataTable";
import { Card } from "../../parts/Card";
import { Figure } from "../../parts/Figure";
import { Moment } from "../../parts/Moment";
import { whole } from "../../parts/text";
import type { Preview } from "./replays";

type Sample = Preview["first"][number];

interface Props {
  zone: string;
  source: "log" | "deliveries";
  preview: Preview;
}

/** What the run would send now: how many deliveries, which, and for how long. */
export function PreviewResult({ zone, source, preview }: Props) {
  const { exact, deliveries, skipped, missing, matched, examined, total, duration_s: seconds, first, last } = preview;
  const things = source === "log" ? "events" : "deliveries";
  const about = exact ? "exactly, as of now" : source === "log" ? "estimated" : "at least";
  return (
    <Stack gap="md" role="status" aria-label="Preview">
      <SimpleGrid cols={{ base: 2, md: 4 }} spacing="md">
        <Figure label="To be sent" value={whole(deliveries)} about={about} />
        <Figure label="Duration" value={deliveries === 0 ? "–" : seconds < 1 ? "under 1 s" : secondsText(seconds)} about="at this rate" />
        <Figure label="Skipped" value={whole(skipped)} about="delivered, discarded or pending" />
        <Figure label="Missing" value={whole(missing)} about="no longer stored" />
      </SimpleGrid>
      <Text size="sm" c="dimmed" className="number">
        {`Examined: ${whole(examined)} ${total === null || total === examined ? "" : `of ${whole(total)} `}${things}. Matched: ${whole(matched)}.`}
      </Text>
      {deliveries === 0 && exact && <Text size="sm">The run would send nothing.</Text>}
      {first.length > 0 && (
        <SimpleGrid cols={{ base: 1, md: last.length === 0 ? 1 : 2 }} spacing="md" style={{ alignItems: "start" }}>
          <Samples zone={zone} title={last.length === 0 ? "Deliveries" : "First deliveries"} samples={first} />
          {last.length > 0 && <Samples zone={zone} title="Last deliveries" samples={last} />}
        </SimpleGrid>
      )}
    </Stack>
  );
}

const APPENDED: Column<Sample> = { title: "Appended", cell: ({ appended_at: at }) => (at === null ? "–" : <Moment at={at} />) };

function Samples({ zone, title, samples }: { zone: string; title: string; samples: readonly Sample[] }) {
  return (
    <Card title={title}>
      <DataTable
        label={title}
        items={samples}
        keyOf={({ stream, segment, sequence }) => `${stream} ${segment} ${sequence}`}
        minWidth={300}
        columns={[
          {
            title: "Event",
            cell: ({ stream, sequence }) => (
              <Anchor component={Link} to={`${pathIn(zone, `streams/${encodeURIComponent(stream)}/events`)}?from=${sequence}&event=${sequence}`} size="sm">
                {stream} {whole(sequence)}
              </Anchor>
            ),
          },
          ...(samples.some(({ appended_at: at }) => at !== null) ? [APPENDED] : []),
        ]}
      />
    </Card>
  );
}
