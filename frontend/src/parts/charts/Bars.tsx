import "uplot/dist/uPlot.min.css";

import { useComputedColorScheme } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";

import classes from "./Bars.module.css";
import { barOptions } from "./chartOptions";
import { Legend } from "./Legend";

const HEIGHT = 180;

interface Props {
  times: number[]; // start of each span, in seconds since 1970
  width: number; // of each span, in seconds
  values: number[];
  marked?: number[]; // the part of each value that stands out, as what failed
  legend?: readonly string[]; // names of the values, and of what is marked
  reading: (at: number) => string; // text for one span, as a tooltip
  label: string; // accessible name, with the sum
  onChoose?: (at: number) => void; // called when a bar is pressed; needs a keyboard alternative elsewhere
}

/** Counts over time, a bar for each span. */
export function Bars({ times, width, values, marked, legend, reading, label, onChoose }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const scheme = useComputedColorScheme();
  const [at, setAt] = useState<number | null>(null);
  const marks = marked !== undefined;

  useEffect(() => {
    const host = frame.current;
    if (host === null) return;
    const drawn = new uPlot({ ...barOptions(host, width, marks, setAt), width: host.clientWidth, height: HEIGHT }, marks ? [[], [], []] : [[], []], host);
    plot.current = drawn;
    const watching = new ResizeObserver(() => drawn.setSize({ width: host.clientWidth, height: HEIGHT }));
    watching.observe(host);
    return () => {
      watching.disconnect();
      drawn.destroy();
    };
  }, [width, marks, scheme]);

  useEffect(() => {
    const rest = marked === undefined ? [values] : [values, values.map((value, index) => value - (marked[index] ?? 0))];
    plot.current?.setData([times, ...rest]);
  }, [times, values, marked, width, scheme]);

  return (
    <div>
      <div
        ref={frame}
        className={classes.frame}
        role="img"
        aria-label={label}
        data-chooses={onChoose !== undefined}
        onClick={() => at !== null && at < times.length && onChoose?.(at)}
      />
      {legend !== undefined && <Legend entries={legend.map((name, index) => ({ name, colour: index === 0 ? "--chart-line" : "--chart-bad" }))} />}
      <div className={classes.reading} aria-hidden>
        {at === null || at >= times.length ? "" : reading(at)}
      </div>
    </div>
  );
}
