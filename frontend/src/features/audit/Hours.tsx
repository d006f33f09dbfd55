import { SimpleGrid, Text } from "@mantine/core";
import { useMemo } from "react";

import { Bars } from "../../parts/charts/Bars";
import { Card } from "../../parts/Card";
import { whole } from "../../parts/text";
import type { Hour } from "./audit";

const HOUR_S = 3_600;
const TIME = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short", hour12: false });

const PLOTS = [
  { title: "Events", valueOf: ({ events }: Hour) => events },
  { title: "Deliveries", valueOf: ({ deliveries }: Hour) => deliveries },
  { title: "Undelivered", valueOf: ({ undelivered }: Hour) => undelivered },
  { title: "Late", valueOf: ({ late }: Hour) => late },
];

/** Events and deliveries by hour. */
export function Hours({ hours }: { hours: Hour[] }) {
  const times = useMemo(() => hours.map(({ hour }) => Date.parse(hour) / 1000), [hours]);
  if (hours.length === 0) return null;
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
      {PLOTS.map(({ title, valueOf }) => (
        <Plot key={title} title={title} times={times} values={hours.map(valueOf)} />
      ))}
    </SimpleGrid>
  );
}

function Plot({ title, times, values }: { title: string; times: number[]; values: number[] }) {
  const sum = values.reduce((all, one) => all + one, 0);
  const said = `${whole(sum)} in ${whole(times.length)} ${times.length === 1 ? "hour" : "hours"}`;
  return (
    <Card title={`${title} by hour`} aside={<Text size="sm" c="dimmed" className="number">{said}</Text>}>
      <div style={{ padding: "0 8px 8px" }}>
        <Bars
          times={times}
          width={HOUR_S}
          values={values}
          reading={(at) => `${TIME.format((times[at] ?? 0) * 1000)}: ${whole(values[at] ?? 0)}`}
          label={`${title}: ${said}`}
        />
      </div>
    </Card>
  );
}
