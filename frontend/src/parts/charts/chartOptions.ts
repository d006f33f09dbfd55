import uPlot, { type Axis, type Options } from "uplot";

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const FINE = new Intl.DateTimeFormat(undefined, { minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hour12: false });
const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const HOUR_S = 3_600;
const DAY_S = 86_400;
const COUNT = new Intl.NumberFormat();
const INCREMENTS = {
  decimal: [1, 2, 5].flatMap((step) => Array.from({ length: 9 }, (_, power) => step * 10 ** power)).sort((a, b) => a - b),
  binary: Array.from({ length: 50 }, (_, power) => 2 ** power),
};

export type Unit = keyof typeof INCREMENTS; // counts, or bytes
export type PlotOptions = Omit<Options, "width" | "height">;
type OnPoint = (at: number | null) => void;

interface Look {
  format: (value: number) => string;
  label: string;
  bounded: boolean; // is there a second line that bounds the first?
  scale: Unit;
}
const SHOWN_S = 120; // at least; an empty chart does not stretch two points over its width

type Colour = (name: string) => string;

function coloursOf(host: Element): Colour {
  const style = getComputedStyle(host);
  return (name) => style.getPropertyValue(name).trim();
}

function axisOf(colour: Colour): Axis {
  return {
    stroke: colour("--chart-text"),
    font: "11px ui-sans-serif, system-ui, sans-serif",
    grid: { stroke: colour("--chart-grid"), width: 1 },
    ticks: { show: false },
  };
}

/** Options of a plot of spans; `onPoint` is called with the index of the span under the pointer. */
function spanOptions(colour: Colour, onPoint: OnPoint) {
  return {
    legend: { show: false },
    padding: [12, 16, 0, 0],
    hooks: { setCursor: [({ cursor: { idx } }) => onPoint(idx ?? null)] },
    time: { ...axisOf(colour), grid: { show: false }, size: 32, space: 90, values: (_, ticks) => ticks.map((tick) => moment(tick, ticks)) },
  } satisfies { time: Axis } & Partial<Options>;
}

/** Bars of spans of `width` seconds; `marked`: behind each bar is a larger one, whose visible part stands out. */
export function barOptions(host: Element, width: number, marked: boolean, onPoint: OnPoint): PlotOptions {
  const colour = coloursOf(host);
  const { time, ...shared } = spanOptions(colour, onPoint);
  const bars = (line: string) => ({ stroke: line, fill: line, width: 0, points: { show: false }, paths: uPlot.paths.bars?.({ align: 1, size: [0.86, 40], radius: 0.15 }) });
  return {
    ...shared,
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: { x: { time: true, range: ({ data: [times] }) => [times[0] ?? 0, (times.at(-1) ?? 0) + width] }, y: { range: fromZero } },
    axes: [time, { ...axisOf(colour), size: 56, incrs: INCREMENTS.decimal, values: (_, ticks) => ticks.map((tick) => COUNT.format(tick)) }],
    series: [{}, ...(marked ? [bars(colour("--chart-bad"))] : []), bars(colour("--chart-line"))],
  };
}

/** Lines of decimal logarithms at the middles of spans of `width` seconds, each in the colour of a variable. */
export function lineOptions(host: Element, width: number, colours: readonly string[], format: (value: number) => string, onPoint: OnPoint): PlotOptions {
  const colour = coloursOf(host);
  const { time, ...shared } = spanOptions(colour, onPoint);
  return {
    ...shared,
    cursor: { y: false, points: { size: 7 }, drag: { x: false, y: false } },
    scales: { x: { time: true, range: ({ data: [middles] }) => [(middles[0] ?? 0) - width / 2, (middles.at(-1) ?? 0) + width / 2] }, y: { range: wholeDecades } },
    axes: [time, { ...axisOf(colour), size: 64, incrs: [1, 2, 5], values: (_, ticks) => ticks.map((tick) => format(10 ** tick)) }],
    series: [{}, ...colours.map((name) => ({ stroke: colour(name), width: 1.75, points: { show: true, size: width < HOUR_S ? 5 : 3, fill: colour(name), stroke: colour(name) } }))],
  };
}

export function chartOptions(host: Element, { format, label, bounded, scale }: Look): PlotOptions {
  const colour = coloursOf(host);
  const line = colour("--chart-line");
  const axis = axisOf(colour);
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

/** Of decimal logarithms: from a power of ten to a power of ten. */
function wholeDecades(_: unknown, from: number | null, to: number | null): [number, number] {
  const low = Math.floor(from ?? 0);
  return [low, Math.max(Math.ceil(to ?? 0), low + 1)];
}

/** The time of day, or the day at its midnight and where the ticks are days apart. */
function moment(tick: number, ticks: readonly number[]): string {
  const apart = (ticks[1] ?? tick) - (ticks[0] ?? tick);
  if (apart >= DAY_S || new Date(tick * 1000).toTimeString().startsWith("00:00:00")) return DAY.format(tick * 1000);
  return apart < 1 && ticks.length > 1 ? FINE.format(tick * 1000) : clock(tick);
}

function clock(seconds: number): string {
  return CLOCK.format(seconds * 1000);
}
