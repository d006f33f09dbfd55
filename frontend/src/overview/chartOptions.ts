import type { Axis, Options } from "uplot";

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const INCREMENTS = [1, 2, 5].flatMap((step) => Array.from({ length: 9 }, (_, power) => step * 10 ** power)).sort((a, b) => a - b);
const SHOWN_S = 120; // at least; an empty chart does not stretch two points over its width

export function chartOptions(
  host: Element,
  format: (value: number) => string,
  label: string,
): Omit<Options, "width" | "height"> {
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
      { ...axis, size: 56, incrs: INCREMENTS, values: (_, ticks) => ticks.map((tick) => format(tick)) },
    ],
    series: [{}, { label, stroke: line, width: 1.75, fill: colour("--chart-fill"), points: { show: false } }],
  };
}

function recent(_: unknown, from: number, to: number): [number, number] {
  return [Math.min(from, to - SHOWN_S), to];
}

function fromZero(_: unknown, _from: number, to: number | null): [number, number] {
  return [0, Math.max(1, (to ?? 0) * 1.15)];
}

function clock(seconds: number): string {
  return CLOCK.format(seconds * 1000);
}
