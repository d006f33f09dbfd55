import { useCallback, useMemo } from "react";
import type { AlignedData } from "uplot";

import classes from "./Chart.module.css";
import { chartOptions, type Unit } from "./chartOptions";
import { usePlot } from "./usePlot";

const HEIGHT = 200;

interface Props {
  times: number[]; // seconds of the epoch
  values: (number | null)[];
  bounds?: (number | null)[]; // a line that the values should stay below
  format: (value: number) => string;
  scale?: Unit;
  label: string;
}

/** A line over time, drawn again when its values, its width or the colours change. */
export function Chart({ times, values, bounds, format, scale = "decimal", label }: Props) {
  const latest = values.at(-1);
  const bounded = bounds !== undefined;
  const options = useCallback((host: Element) => chartOptions(host, { format, label, bounded, scale }), [bounded, format, label, scale]);
  const data = useMemo((): AlignedData => (bounds === undefined ? [times, values] : [times, values, bounds]), [times, values, bounds]);
  const frame = usePlot(options, data, HEIGHT);

  return (
    <div
      ref={frame}
      className={classes.frame}
      role="img"
      aria-label={`${label}: ${latest === null || latest === undefined ? "no value yet" : format(latest)}`}
    />
  );
}
