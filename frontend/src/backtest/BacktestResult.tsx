import { Button, Group, SimpleGrid, Text } from "@mantine/core";
import { IconAdjustments } from "@tabler/icons-react";
import { Link } from "react-router";

import { pathIn } from "../api/zone";
import { askedOf, PAIRS } from "../filters/draft";
import { Samples } from "../filters/Samples";
import { Judgement } from "../jobs/Judgement";
import { Rows } from "../jobs/Rows";
import type { ResultProps } from "../jobs/types";
import { Block } from "../parts/Block";
import { Card } from "../parts/Card";
import { Empty } from "../parts/Empty";
import { Figure } from "../parts/Figure";
import { Json } from "../parts/Json";
import { whole } from "../parts/text";
import { askedFor, type AskedFor, type BacktestDetails, backtestOf, filterOf, searchOf } from "./backtest";
import { Histogram } from "./Histogram";

/** What a filter would have matched: how many, when, and which. */
export function BacktestResult({ run }: ResultProps) {
  const found = backtestOf(run);
  const asked = askedFor(run);
  const { zone } = asked;
  const formOf = (again: AskedFor) => `${pathIn(zone, "jobs/backtest")}?${searchOf(again)}`;
  return (
    <>
      <Judgement run={run} />
      <Figures found={found} />
      <Tried asked={asked} to={formOf(asked)} />
      {found.hours.length > 0 && <Histogram found={found} to={([since, until]) => formOf({ ...asked, since, until })} />}
      <Matches zone={zone} asked={asked} found={found} />
      <Rows title="Segments that could not be read" rows={found.skipped} />
    </>
  );
}

function Figures({ found: { count, searched_events: events, searched_segments: segments, skipped } }: { found: BacktestDetails }) {
  return (
    <SimpleGrid cols={{ base: 2, lg: 4 }} spacing="md">
      <Figure label="Matched" value={whole(count)} />
      <Figure label="Events searched" value={whole(events)} />
      <Figure label="Segments searched" value={whole(segments)} />
      <Figure label="Segments skipped" value={whole(skipped.length)} about={skipped.length === 0 ? "all could be read" : "see below why"} />
    </SimpleGrid>
  );
}

function Tried({ asked: { draft }, to }: { asked: AskedFor; to: string }) {
  const { language, text } = draft;
  return (
    <Card title="The filter" aside={<Text size="sm" c="dimmed">in the {language} language</Text>}>
      <div style={{ padding: "0 16px 16px" }}>
        {language === PAIRS ? <Json value={filterOf(draft)?.filter} label="the filter" /> : <Block text={text} label="The filter" copy="Copy the filter" wraps />}
        <Group mt="sm">
          <Button component={Link} to={to} variant="default" leftSection={<IconAdjustments size={16} />}>
            Change it and run again
          </Button>
        </Group>
      </div>
    </Card>
  );
}

function Matches({ zone, asked: { stream, draft }, found: { count, shown } }: { zone: string; asked: AskedFor; found: BacktestDetails }) {
  if (count === 0) return <Empty title="Nothing matched" about="No event of that time would have been told. Try a wider filter, or a longer time." />;
  const first = shown.map(({ type, attributes, ...place }) => ({ ...place, event: { type, attributes } }));
  const asked = askedOf(draft) ?? { language: draft.language };
  return (
    <Card title="Which" aside={<Text size="sm" c="dimmed" className="number">{count > shown.length ? `${whole(shown.length)} of ${whole(count)}; the files below have all` : `all ${whole(count)}`}</Text>}>
      <div style={{ maxHeight: 520, padding: "0 16px 16px", overflowY: "auto" }}>
        <Samples zone={zone} asked={asked} outcome={{ stream, samples: { first, last: [] } }} />
      </div>
    </Card>
  );
}
