import { Group, Text, Tooltip, UnstyledButton } from "@mantine/core";

import { Moment } from "../../parts/Moment";
import { bytes, whole } from "../../parts/text";
import classes from "./SegmentPlot.module.css";
import { countOf, placeOf, type Segment, sizeOf } from "./segments";

const PLACES = [
  ["open", "being written"],
  ["live", "in the database"],
  ["archived", "in the archive"],
  ["dropped", "dropped"],
] as const;

const BAR_PX_MAX = 64;

interface Props {
  segments: readonly Segment[]; // the oldest first
  chosen: string | undefined;
  onChoose: (uuid: string) => void;
}

/** A bar for each segment in the stream's order: its height is the size, its colour the tier. */
export function SegmentPlot({ segments, chosen, onChoose }: Props) {
  const most = Math.max(1, ...segments.map(sizeOf));
  const [first, last] = [segments[0], segments.at(-1)];
  return (
    <div className={classes.frame}>
      <div className={classes.plot} style={{ width: `min(100%, ${segments.length * BAR_PX_MAX}px)` }}>
        <div className={classes.bars} role="group" aria-label="Segments by size, the oldest first">
          {segments.map((segment) => (
            <Tooltip key={segment.uuid} label={<About segment={segment} />} multiline openDelay={80}>
              <UnstyledButton
                className={classes.bar}
                data-chosen={segment.uuid === chosen}
                aria-label={`Segment ${whole(segment.first)} to ${whole(segment.last)}, ${placeOf(segment)}, ${bytes(sizeOf(segment))}`}
                onClick={() => onChoose(segment.uuid)}
              >
                <span className={classes.fill} data-place={placeOf(segment)} style={{ height: `${(sizeOf(segment) / most) * 100}%` }} />
              </UnstyledButton>
            </Tooltip>
          ))}
        </div>
        {first !== undefined && last !== undefined && (
          <div className={classes.ends}>
            <span>
              {whole(first.first)}, <Moment at={first.opened_at} />
            </span>
            <span>{whole(last.last)}</span>
          </div>
        )}
      </div>
    </div>
  );
}

function About({ segment }: { segment: Segment }) {
  return (
    <>
      <Text size="xs" fw={600} className="number">
        {countOf(segment) === 0 ? "empty" : `${whole(segment.first)} to ${whole(segment.last)}`}
      </Text>
      <Text size="xs" className="number">
        {whole(countOf(segment))} events, {bytes(sizeOf(segment))}, {placeOf(segment)}
        {segment.removal_reason !== null && ` (${segment.removal_reason})`}
      </Text>
    </>
  );
}

export function Legend() {
  return (
    <Group gap="md">
      {PLACES.map(([place, label]) => (
        <Group key={place} gap={6}>
          <span className={classes.key} data-place={place} aria-hidden />
          <Text size="xs" c="dimmed">
            {label}
          </Text>
        </Group>
      ))}
    </Group>
  );
}
