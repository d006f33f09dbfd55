import "uplot/dist/uPlot.min.css";

import { useComputedColorScheme } from "@mantine/core";
import { useEffect, useRef } from "react";
import uPlot from "uplot";

import classes from "./Chart.module.css";
import { chartOptions, type Unit } from "./chartOptions";

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
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const scheme = useComputedColorScheme();
  const latest = values.at(-1);
  const bounded = bounds !== undefined;

  useEffect(() => {
    const host = frame.current;
    if (host === null) return;
    const options = chartOptions(host, { format, label, bounded, scale });
    const drawn = new uPlot({ ...options, width: host.clientWidth, height: HEIGHT }, bounded ? [[], [], []] : [[], []], host);
    plot.current = drawn;
    const watching = new ResizeObserver(() => drawn.setSize({ width: host.clientWidth, height: HEIGHT }));
    watching.observe(host);
    return () => {
      watching.disconnect();
      drawn.destroy();
    };
  }, [bounded, format, label, scale, scheme]);

  useEffect(
    () => plot.current?.setData(bounds === undefined ? [times, values] : [times, values, bounds]),
    [times, values, bounds, scheme],
  );

  return (
    <div
      ref={frame}
      className={classes.frame}
      role="img"
      aria-label={`${label}: ${latest === null || latest === undefined ? "no value yet" : format(latest)}`}
    />
  );
}
