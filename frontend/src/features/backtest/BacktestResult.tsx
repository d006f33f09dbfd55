import { Button, Group, SimpleGrid, Text } from "@mantine/core";
import { IconAdjustments } from "@tabler/icons-react";
import { Link } from "react-router";

import { pathIn } from "../../api/zone";
import { filterRequestOf, PAIRS } from "../filters/draft";
import { Samples } from "../dryRun/Samples";
import { Judgement } from "../jobs/Judgement";
import { Rows } from "../jobs/Rows";
import type { ResultProps } from "../jobs/types";
import { Block } from "../../parts/Block";
import { Card } from "../../parts/Card";
import { Empty } from "../../parts/Empty";
import { Figure } from "../../parts/Figure";
import { Json } from "../../parts/Json";
import { whole } from "../../parts/text";
import { type BacktestDetails, backtestOf, type BacktestParams, backtestParams, filterOf, searchOf } from "./backtest";
import { Histogram } from "./Histogram";
import { isOfPattern } from "./patternBacktest";
import { PatternBacktestResult } from "./PatternBacktestResult";

/** The result of a back-test, of a filter or of a pattern. */
export function BacktestResult(props: ResultProps) {
  return isOfPattern(props.run) ? <PatternBacktestResult {...props} /> : <FilterResult {...props} />;
}

/** How many events matched, when, and which. */
function FilterResult({ run }: ResultProps) {
  const found = backtestOf(run);
  const params = backtestParams(run);
  const { zone } = params;
  const formOf = (again: BacktestParams) => `${pathIn(zone, "jobs/backtest")}?${searchOf(again)}`;
  return (
    <>
      <Judgement run={run} />
      <Figures found={found} />
      <Filter params={params} to={formOf(params)} />
      {found.histogram.length > 0 && <Histogram histogram={found.histogram} width={found.bucket_s} to={([since, until]) => formOf({ ...params, since, until })} />}
      <Matches zone={zone} params={params} found={found} />
      <Rows title="Skipped segments" rows={found.skipped} />
    </>
  );
}

function Figures({ found: { matched_events: matched, searched_events: events, searched_segments: segments, skipped } }: { found: BacktestDetails }) {
  return (
    <SimpleGrid cols={{ base: 2, lg: 4 }} spacing="md">
      <Figure label="Events matched" value={whole(matched)} />
      <Figure label="Events searched" value={whole(events)} />
      <Figure label="Segments searched" value={whole(segments)} />
      <Figure label="Segments skipped" value={whole(skipped.length)} about={skipped.length === 0 ? "all were read" : "listed below"} />
    </SimpleGrid>
  );
}

function Filter({ params: { draft }, to }: { params: BacktestParams; to: string }) {
  const { language, text } = draft;
  return (
    <Card title="Filter" aside={<Text size="sm" c="dimmed">language: {language}</Text>}>
      <div style={{ padding: "0 16px 16px" }}>
        {language === PAIRS ? <Json value={filterOf(draft)?.filter} label="the filter" /> : <Block text={text} label="The filter" copy="Copy the filter" wraps />}
        <Group mt="sm">
          <Button component={Link} to={to} variant="default" leftSection={<IconAdjustments size={16} />}>
            Edit and run again
          </Button>
        </Group>
      </div>
    </Card>
  );
}

function Matches({ zone, params: { stream, draft }, found: { matched_events: count, sample } }: { zone: string; params: BacktestParams; found: BacktestDetails }) {
  if (count === 0) return <Empty title="No matches" about="No event in this time range matches. Try a wider filter or a longer range." />;
  const first = sample.map(({ type, attributes, ...position }) => ({ ...position, event: { type, attributes } }));
  const request = filterRequestOf(draft) ?? { language: draft.language };
  return (
    <Card title="Matches" aside={<Text size="sm" c="dimmed" className="number">{count > sample.length ? `${whole(sample.length)} of ${whole(count)}; the files below contain all` : `all ${whole(count)}`}</Text>}>
      <div style={{ maxHeight: 520, padding: "0 16px 16px", overflowY: "auto" }}>
        <Samples zone={zone} request={request} outcome={{ stream, samples: { first, last: [] } }} />
      </div>
    </Card>
  );
}
