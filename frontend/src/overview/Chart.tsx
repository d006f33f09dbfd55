import "uplot/dist/uPlot.min.css";

import { useComputedColorScheme } from "@mantine/core";
import { useEffect, useRef } from "react";
import uPlot from "uplot";

import classes from "./Chart.module.css";
import { chartOptions } from "./chartOptions";

const HEIGHT = 200;

interface Props {
  times: number[]; // seconds of the epoch
  values: (number | null)[];
  format: (value: number) => string;
  label: string;
}

/** A line over time, drawn anew when its values, its width or the colours change. */
export function Chart({ times, values, format, label }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const scheme = useComputedColorScheme();
  const latest = values.at(-1);

  useEffect(() => {
    const host = frame.current;
    if (host === null) return;
    const drawn = new uPlot({ ...chartOptions(host, format, label), width: host.clientWidth, height: HEIGHT }, [[], []], host);
    plot.current = drawn;
    const watching = new ResizeObserver(() => drawn.setSize({ width: host.clientWidth, height: HEIGHT }));
    watching.observe(host);
    return () => {
      watching.disconnect();
      drawn.destroy();
    };
  }, [format, label, scheme]);

  useEffect(() => plot.current?.setData([times, values]), [times, values, scheme]);

  return (
    <div
      ref={frame}
      className={classes.frame}
      role="img"
      aria-label={`${label}: ${latest === null || latest === undefined ? "no value yet" : format(latest)}`}
    />
  );
}
