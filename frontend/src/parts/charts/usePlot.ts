import "uplot/dist/uPlot.min.css";

import { useComputedColorScheme } from "@mantine/core";
import { useEffect, useRef } from "react";
import uPlot, { type AlignedData } from "uplot";

import type { PlotOptions } from "./chartOptions";

/** Draw a plot in the frame that is returned; a new one when the options, the number of lines or the colours change. */
export function usePlot(options: (host: Element) => PlotOptions, data: AlignedData, height: number) {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const scheme = useComputedColorScheme();
  const lines = data.length;

  useEffect(() => {
    const host = frame.current;
    if (host === null) return;
    const empty = Array.from({ length: lines }, () => []) as unknown as AlignedData;
    const drawn = new uPlot({ ...options(host), width: host.clientWidth, height }, empty, host);
    plot.current = drawn;
    const watching = new ResizeObserver(() => drawn.setSize({ width: host.clientWidth, height }));
    watching.observe(host);
    return () => {
      watching.disconnect();
      drawn.destroy();
    };
  }, [options, lines, height, scheme]);

  useEffect(() => plot.current?.setData(data), [data, options, height, scheme]);

  return frame;
}
