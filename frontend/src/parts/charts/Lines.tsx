import { useCallback, useMemo, useState } from "react";
import type { AlignedData } from "uplot";

import classes from "./Bars.module.css";
import { lineOptions } from "./chartOptions";
import { Legend } from "./Legend";
import { usePlot } from "./usePlot";

const HEIGHT = 180;
const COLOURS = ["--chart-line", "--chart-second", "--chart-bound"] as const; // of the lines, in their order

interface Props {
  times: number[]; // start of each span, in seconds since 1970
  width: number; // of each span, in seconds
  lines: { name: string; values: (number | null)[] }[]; // three at most; positive
  format: (value: number) => string;
  reading: (at: number) => string; // text for one span, as a tooltip
  label: string; // accessible name
}

/** Lines over time on a logarithmic scale, with a legend. */
export function Lines({ times, width, lines, format, reading, label }: Props) {
  const [at, setAt] = useState<number | null>(null);
  const count = lines.length;
  const options = useCallback((host: Element) => lineOptions(host, width, COLOURS.slice(0, count), format, setAt), [width, count, format]);
  const data = useMemo((): AlignedData => [times.map((time) => time + width / 2), ...lines.map(({ values }) => values.map(logarithm))], [times, lines, width]);
  const frame = usePlot(options, data, HEIGHT);

  return (
    <div>
      <div ref={frame} className={classes.frame} role="img" aria-label={label} />
      <Legend entries={lines.map(({ name }, index) => ({ name, colour: COLOURS[index] ?? COLOURS[0] }))} />
      <div className={classes.reading} aria-hidden>
        {at === null || at >= times.length ? "" : reading(at)}
      </div>
    </div>
  );
}

function logarithm(value: number | null): number | null {
  return value === null || value <= 0 ? null : Math.log10(value);
}
