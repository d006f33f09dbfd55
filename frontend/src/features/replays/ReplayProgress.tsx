import { Progress, SimpleGrid, Stack, Text } from "@mantine/core";

import { secondsText } from "../jobs/words";
import { Card } from "../../parts/Card";
import { Figure } from "../../parts/Figure";
import { rate, whole } from "../../parts/text";
import { type FollowedReplay, isGoing, rateOf } from "./replays";
import { WAITS } from "./words";

/** How far a run is, how fast it goes, and what it waits for. */
export function ReplayProgress({ followed: { replay, readings } }: { followed: FollowedReplay }) {
  const { state, written, skipped, missing, matched, examined, waits_for: waits, limit } = replay;
  const share = shareOf(replay);
  const measured = rateOf(readings);
  return (
    <>
      <Card title="Progress" aside={share !== undefined && <Text fw={600} className="number">{share} %</Text>}>
        <Stack gap={8} px="md" pb="md" role="status" aria-label="Progress">
          <Progress
            value={share ?? 100}
            animated={state === "running" && share === undefined}
            color={state === "failed" ? "red" : state === "paused" || state === "cancelled" ? "gray" : undefined}
            size="lg"
            aria-label="Progress of the run"
          />
          <Text size="sm" c="dimmed" className="number">
            {doneText(replay)}
          </Text>
          {state === "running" && waits !== "" && <Text size="sm">{WAITS[waits]}</Text>}
        </Stack>
      </Card>
      <SimpleGrid cols={{ base: 2, md: 4 }} spacing="md">
        <Figure label="Sent" value={whole(written)} about={limit === null ? "Deliveries" : `Stops at ${whole(limit)} deliveries`} />
        <Figure
          label="Rate"
          value={isGoing(replay) ? (measured === undefined ? "…" : `${rate(measured)}/s`) : averageText(replay)}
          about={`${isGoing(replay) ? "Now" : "On average"}; at most ${whole(replay.rate)}/s`}
        />
        <Figure label="Skipped" value={whole(skipped)} about={`Of ${whole(matched)} that matched: delivered, discarded or pending`} />
        <Figure label="Missing" value={whole(missing)} about={`Of ${whole(examined)} examined: no longer stored`} />
      </SimpleGrid>
    </>
  );
}

type Run = FollowedReplay["replay"];

function shareOf({ state, examined, total, written, limit }: Run): number | undefined {
  if (state === "completed") return 100;
  const ofAll = total === null ? undefined : total === 0 ? 1 : examined / total;
  const ofLimit = limit === null ? undefined : written / limit;
  if (ofAll === undefined && ofLimit === undefined) return undefined;
  return Math.min(100, Math.floor(100 * Math.max(ofAll ?? 0, ofLimit ?? 0)));
}

function doneText({ source, state, examined, total, limit, written }: Run): string {
  const things = source === "log" ? "events" : "deliveries";
  const counts = total === null ? `${whole(examined)} ${things} examined` : `${whole(examined)} of ${whole(total)} ${things} examined`;
  return state === "completed" && limit !== null && written >= limit ? `${counts}; the limit is reached` : counts;
}

function secondsOf({ requested_at: from, ended_at: to }: Run): number {
  return to === null ? 0 : (Date.parse(to) - Date.parse(from)) / 1000;
}

function averageText(run: Run): string {
  const seconds = secondsOf(run);
  return seconds <= 0 ? "–" : `${rate(run.written / seconds)}/s`;
}

/** `It took 12 seconds`; of a run that has ended. */
export function tookText(run: Run): string {
  return `It took ${secondsText(secondsOf(run))}`;
}
