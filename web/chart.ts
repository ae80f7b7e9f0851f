/** Small charts: an area over time, with the current value and the peak. */
import type { SeriesName, SeriesPoint } from "../src/dashboard/dashboard-state.ts";
import type { ChartRange } from "./chart-range.ts";
import { fill, h, setAttribute, setText, svg } from "./dom.ts";
import { clock, duration, perSecond } from "./format.ts";

const WIDTH = 300;
const HEIGHT = 48;
/** The current value is the mean of this many steps: the value of a single second varies too much. */
const CURRENT_STEPS = 5;

interface ChartSpec {
  readonly name: SeriesName;
  readonly title: string;
  readonly tone: string;
}

const CHARTS: readonly ChartSpec[] = [
  { name: "requests", title: "Requests per second", tone: "sent" },
  { name: "waitMs", title: "Longest wait", tone: "wait" },
  { name: "throttles", title: "Throttles per second", tone: "throttled" },
  { name: "hits", title: "Cache hits per second", tone: "hit" },
  { name: "failures", title: "Failures per second", tone: "failed" },
  { name: "refused", title: "Refused per second", tone: "refused" },
];

export class Charts {
  readonly #charts: readonly Chart[];

  /** @param names the series that the source has */
  constructor(container: HTMLElement, names: ReadonlySet<SeriesName>) {
    this.#charts = CHARTS.filter(({ name }) => names.has(name)).map(spec => new Chart(spec));
    fill(container, ...this.#charts.map(({ element }) => element));
  }

  draw(points: readonly SeriesPoint[], range: ChartRange): void {
    for (const chart of this.#charts) chart.draw(points, range);
  }
}

class Chart {
  readonly element: HTMLElement;
  readonly #spec: ChartSpec;
  readonly #now = h("b");
  readonly #peak = h("span", { class: "soft" });
  readonly #area = svg("path", { class: "area" });
  readonly #line = svg("path", { class: "line" });
  readonly #cursor = svg("line", { class: "cursor", y1: 0, y2: HEIGHT, visibility: "hidden" });
  readonly #drawing: SVGElement;
  #values: readonly number[] = [];
  #range: ChartRange = { fromMs: 0, toMs: 1, stepMs: 1000 };
  #pointedAt: number | undefined;

  constructor(spec: ChartSpec) {
    this.#spec = spec;
    const viewBox = `0 0 ${WIDTH} ${HEIGHT}`;
    const baseline = svg("line", { class: "rule", x1: 0, x2: WIDTH, y1: HEIGHT - 0.5, y2: HEIGHT - 0.5 });
    this.#drawing = svg(
      "svg",
      { viewBox, preserveAspectRatio: "none", role: "img" },
      baseline,
      this.#area,
      this.#line,
      this.#cursor,
    );
    this.#drawing.addEventListener("pointermove", event => this.#point(event));
    this.#drawing.addEventListener("pointerleave", () => {
      this.#pointedAt = undefined;
      this.#label();
    });
    const figures = h("p", { class: "figures" }, this.#now, this.#peak);
    this.element = h(
      "figure",
      { class: `chart ${spec.tone}` },
      h("figcaption", {}, spec.title),
      figures,
      this.#drawing,
    );
  }

  draw(points: readonly SeriesPoint[], range: ChartRange): void {
    this.#range = range;
    this.#values = valuesOf(points, this.#spec.name, range);
    const peak = Math.max(this.#spec.name === "waitMs" ? 10 : 1, ...this.#values);
    const y = (value: number) => (HEIGHT - 1 - (value / peak) * (HEIGHT - 4)).toFixed(1);
    const x = (index: number) => ((index / Math.max(1, this.#values.length - 1)) * WIDTH).toFixed(1);
    const path = this.#values.map((value, index) => `${index === 0 ? "M" : "L"}${x(index)} ${y(value)}`).join("");
    setAttribute(this.#line, "d", path);
    setAttribute(this.#area, "d", path === "" ? "" : `${path}L${WIDTH} ${HEIGHT}L0 ${HEIGHT}Z`);
    this.#label();
  }

  #point(event: PointerEvent): void {
    const { left, width } = this.#drawing.getBoundingClientRect();
    this.#pointedAt = Math.max(0, Math.min(1, (event.clientX - left) / width));
    this.#label();
  }

  #label(): void {
    const values = this.#values;
    const recent = values.slice(-CURRENT_STEPS - 1, -1);
    const isWait = this.#spec.name === "waitMs";
    const mean = recent.reduce((sum, value) => sum + value, 0) / Math.max(1, recent.length);
    const now = isWait ? Math.max(0, ...recent) : mean;
    const peak = Math.max(0, ...values);
    const at = this.#pointedAt;
    setText(this.#now, textOf(now, isWait));
    const span = duration(this.#range.toMs - this.#range.fromMs);
    setAttribute(
      this.#drawing,
      "aria-label",
      `${this.#spec.title}: now ${textOf(now, isWait)}, peak ${textOf(peak, isWait)} in ${span}`,
    );
    setAttribute(this.#cursor, "visibility", at === undefined ? "hidden" : "visible");
    if (at === undefined) {
      setText(this.#peak, `peak ${textOf(peak, isWait)}`);
      return;
    }
    const index = Math.round(at * (values.length - 1));
    setAttribute(this.#cursor, "x1", String(at * WIDTH));
    setAttribute(this.#cursor, "x2", String(at * WIDTH));
    const atMs = this.#range.fromMs + index * this.#range.stepMs;
    setText(this.#peak, `${textOf(values[index] ?? 0, isWait)} at ${clock(atMs)}`);
  }
}

/** One value for each step; steps without a point are 0. Counts become rates per second. */
function valuesOf(
  points: readonly SeriesPoint[],
  name: SeriesName,
  { fromMs, toMs, stepMs }: ChartRange,
): readonly number[] {
  const values = new Array<number>(Math.max(1, Math.ceil((toMs - fromMs) / stepMs))).fill(0);
  const factor = name === "waitMs" ? 1 : 1000 / stepMs;
  for (let at = points.length - 1; at >= 0; at -= 1) {
    const point = points[at] as SeriesPoint;
    if (point.atMs < fromMs) break;
    const index = Math.floor((point.atMs - fromMs) / stepMs);
    if (index < values.length) values[index] = point[name] * factor;
  }
  return values;
}

function textOf(value: number, isWait: boolean): string {
  return isWait ? duration(value) : perSecond(value);
}
