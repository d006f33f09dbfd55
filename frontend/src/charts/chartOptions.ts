import type uPlot from "uplot";
import type { Axis, Options } from "uplot";

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const INCREMENTS = {
  decimal: [1, 2, 5].flatMap((step) => Array.from({ length: 9 }, (_, power) => step * 10 ** power)).sort((a, b) => a - b),
  binary: Array.from({ length: 50 }, (_, power) => 2 ** power),
};

export type Scale = keyof typeof INCREMENTS; // counts, or bytes

interface Look {
  format: (value: number) => string;
  label: string;
  bounded: boolean; // is there a second line that bounds the first?
  scale: Scale;
}
const SHOWN_S = 120; // at least; an empty chart does not stretch two points over its width

export function chartOptions(host: Element, { format, label, bounded, scale }: Look): Omit<Options, "width" | "height"> {
  const style = getComputedStyle(host);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const line = colour("--chart-line");
  const axis: Axis = {
    stroke: colour("--chart-text"),
    font: "11px ui-sans-serif, system-ui, sans-serif",
    grid: { stroke: colour("--chart-grid"), width: 1 },
    ticks: { show: false },
  };
  return {
    legend: { show: false },
    cursor: { y: false, points: { size: 7 }, drag: { x: false, y: false } },
    padding: [12, 16, 0, 0],
    scales: { x: { time: true, range: recent }, y: { range: fromZero } },
    axes: [
      { ...axis, grid: { show: false }, size: 32, space: 80, values: (_, ticks) => ticks.map(clock) },
      { ...axis, size: scale === "binary" ? 72 : 56, incrs: INCREMENTS[scale], values: (_, ticks) => ticks.map((tick) => format(tick)) },
    ],
    series: [
      {},
      { label, stroke: line, width: 1.75, fill: colour("--chart-fill"), points: { show: false } },
      ...(bounded ? [{ label: "bound", stroke: colour("--chart-bound"), width: 1.5, dash: [6, 4], points: { show: false } }] : []),
    ],
  };
}

/** From the data itself: for a single point uPlot would propose a day. */
function recent(plot: uPlot): [number, number] {
  const times = plot.data[0];
  const to = times.at(-1) ?? Date.now() / 1000;
  return [Math.min(times[0] ?? to, to - SHOWN_S), to];
}

function fromZero(_: unknown, _from: number, to: number | null): [number, number] {
  return [0, Math.max(1, (to ?? 0) * 1.15)];
}

function clock(seconds: number): string {
  return CLOCK.format(seconds * 1000);
}
