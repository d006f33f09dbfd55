import { useCallback, useMemo, useState } from "react";
import type { AlignedData } from "uplot";

import classes from "./Bars.module.css";
import { barOptions } from "./chartOptions";
import { Legend } from "./Legend";
import { usePlot } from "./usePlot";

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
  const [at, setAt] = useState<number | null>(null);
  const marks = marked !== undefined;
  const options = useCallback((host: Element) => barOptions(host, width, marks, setAt), [width, marks]);
  const data = useMemo((): AlignedData => {
    if (marked === undefined) return [times, values];
    return [times, values, values.map((value, index) => value - (marked[index] ?? 0))];
  }, [times, values, marked]);
  const frame = usePlot(options, data, HEIGHT);

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
