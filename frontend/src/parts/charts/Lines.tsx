import "uplot/dist/uPlot.min.css";

import { useComputedColorScheme } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";

import classes from "./Bars.module.css";
import { lineOptions } from "./chartOptions";
import { Legend } from "./Legend";

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
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const scheme = useComputedColorScheme();
  const [at, setAt] = useState<number | null>(null);
  const count = lines.length;

  useEffect(() => {
    const host = frame.current;
    if (host === null) return;
    const options = lineOptions(host, width, COLOURS.slice(0, count), format, setAt);
    const empty = Array.from({ length: count + 1 }, () => []) as unknown as uPlot.AlignedData;
    const drawn = new uPlot({ ...options, width: host.clientWidth, height: HEIGHT }, empty, host);
    plot.current = drawn;
    const watching = new ResizeObserver(() => drawn.setSize({ width: host.clientWidth, height: HEIGHT }));
    watching.observe(host);
    return () => {
      watching.disconnect();
      drawn.destroy();
    };
  }, [width, count, format, scheme]);

  useEffect(() => {
    const middles = times.map((time) => time + width / 2);
    plot.current?.setData([middles, ...lines.map(({ values }) => values.map(logarithm))]);
  }, [times, lines, width, count, format, scheme]);

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
