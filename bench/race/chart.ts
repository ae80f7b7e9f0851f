/** The results as a chart: slowness relative to the optimum, and rejections. The best clients are at the lower left. */
import { CLIENTS, type ClientSpec } from "./client-spec.ts";
import type { ScenarioResult } from "./result.ts";

interface Point {
  readonly slowness: number;
  /** Rejections per 100 requests. */
  readonly rejected: number;
}

interface Series extends Point {
  readonly spec: ClientSpec;
  /** One point for each scenario that the client finished. */
  readonly points: readonly Point[];
}

const WIDTH = 840;
const HEIGHT = 430;
const LEFT = 70;
const RIGHT = WIDTH - 280;
const TOP = 40;
const BOTTOM = HEIGHT - 60;
const LABEL_HEIGHT = 17;
/** Readable on a dark and on a light page. */
const COLOURS = ["#0a9d58", "#5bbf8a", "#d9534f", "#e0883a", "#4a86d8", "#a26bd6", "#c2529b", "#7d8a99"];
const SLOWNESS_TICKS = [1, 1.25, 1.5, 2, 3, 4, 6, 8];
const REJECTED_TICKS = [0, 1, 3, 10, 30, 100, 300, 1000, 3000];

export function chartOf(results: readonly ScenarioResult[]): string {
  const all = CLIENTS.flatMap(spec => seriesOf(spec, results));
  const most = (of: (point: Point) => number) => Math.max(0, ...all.flatMap(({ points }) => points.map(of)));
  const slowest =
    Math.max(
      2,
      most(({ slowness }) => slowness),
    ) * 1.05;
  const worst =
    Math.max(
      10,
      most(({ rejected }) => rejected),
    ) * 1.1;
  const x = (slowness: number) =>
    LEFT + 12 + (Math.log(Math.max(1, slowness)) / Math.log(slowest)) * (RIGHT - LEFT - 12);
  const y = (rejected: number) => BOTTOM - 12 - (Math.log1p(rejected) / Math.log1p(worst)) * (BOTTOM - TOP - 12);
  const placed = spread(all.map(series => ({ series, atY: y(series.rejected) })));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img" aria-labelledby="title">`,
    '<title id="title">Slowness and rejections of every client, over all scenarios with a makespan</title>',
    "<style>text{font:12px system-ui,sans-serif;fill:#333}.axis,.grid{stroke:#999}.grid{stroke-opacity:.25}.lead{stroke-opacity:.5;fill:none}@media(prefers-color-scheme:dark){text{fill:#ddd}}</style>",
    ...SLOWNESS_TICKS.filter(tick => tick <= slowest).map(tick => column(x(tick), `${tick}x`)),
    ...REJECTED_TICKS.filter(tick => tick <= worst).map(tick => row(y(tick), String(tick))),
    `<path class="axis" fill="none" d="M${LEFT} ${TOP}V${BOTTOM}H${RIGHT}"/>`,
    `<text x="${(LEFT + RIGHT) / 2}" y="${HEIGHT - 16}" text-anchor="middle">makespan / optimum (geometric mean; small: each scenario)</text>`,
    `<text x="${LEFT - 50}" y="${TOP - 16}">rejections per 100 requests</text>`,
    ...all.map(series => dots(series, x, y)),
    ...placed.map(({ series, atY, labelY }) => label(series, x(series.slowness), atY, labelY)),
    "</svg>",
    "",
  ].join("\n");
}

function seriesOf(spec: ClientSpec, results: readonly ScenarioResult[]): readonly Series[] {
  const outcomes = results.flatMap(({ runs }) => runs.find(({ client }) => client === spec.id)?.outcome ?? []);
  const finished = outcomes.filter(({ hosts, failed }) => hosts === undefined && failed === 0);
  if (finished.length === 0) return [];
  const points = finished.map(({ makespanMs, boundMs, rejections = 0, requests }) => ({
    slowness: makespanMs / boundMs,
    rejected: (rejections / requests) * 100,
  }));
  const logs = points.reduce((sum, { slowness }) => sum + Math.log(slowness), 0);
  const rejections = points.reduce((sum, { rejected }) => sum + rejected, 0);
  return [{ spec, points, slowness: Math.exp(logs / points.length), rejected: rejections / points.length }];
}

function dots({ spec, points, slowness, rejected }: Series, x: Scale, y: Scale): string {
  const dot = (point: Point, radius: number, opacity: number) =>
    `<circle cx="${round(x(point.slowness))}" cy="${round(y(point.rejected))}" r="${radius}" fill="${colourOf(spec)}" fill-opacity="${opacity}"/>`;
  return [...points.map(point => dot(point, 3, 0.45)), dot({ slowness, rejected }, 7, 1)].join("");
}

type Scale = (value: number) => number;

function label({ spec, slowness, rejected }: Series, atX: number, atY: number, labelY: number): string {
  const colour = colourOf(spec);
  const text = `${spec.name}: ${slowness.toFixed(2)}x, ${rejected.toFixed(rejected < 10 ? 1 : 0)}`;
  return `<path class="lead" stroke="${colour}" d="M${round(atX + 8)} ${round(atY)}L${RIGHT + 4} ${round(labelY)}"/><text x="${RIGHT + 8}" y="${round(labelY + 4)}">${escaped(text)}</text>`;
}

/** Labels are beside their dots if there is space, otherwise below each other. */
function spread(items: readonly { readonly series: Series; readonly atY: number }[]) {
  let nextY = TOP;
  const placed = items
    .toSorted((a, b) => a.atY - b.atY)
    .map(item => {
      const labelY = Math.max(nextY, item.atY);
      nextY = labelY + LABEL_HEIGHT;
      return { ...item, labelY };
    });
  // The lowest labels may be outside of the chart: all labels are moved up by the same distance.
  let lowest = BOTTOM;
  return placed.toReversed().map(item => {
    const labelY = Math.min(item.labelY, lowest);
    lowest = labelY - LABEL_HEIGHT;
    return { ...item, labelY };
  });
}

function column(atX: number, text: string): string {
  return `<path class="grid" d="M${round(atX)} ${TOP}V${BOTTOM}"/><text x="${round(atX)}" y="${BOTTOM + 18}" text-anchor="middle">${text}</text>`;
}

function row(atY: number, text: string): string {
  return `<path class="grid" d="M${LEFT} ${round(atY)}H${RIGHT}"/><text x="${LEFT - 8}" y="${round(atY + 4)}" text-anchor="end">${text}</text>`;
}

function colourOf(spec: ClientSpec): string {
  return COLOURS[CLIENTS.indexOf(spec) % COLOURS.length] as string;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

function round(value: number): string {
  return value.toFixed(1);
}
