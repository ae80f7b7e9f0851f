/** Connects to the server, keeps the model up to date, and shows the chosen view. */
import type { DashboardPatch, DashboardState, SeriesName } from "../src/dashboard/dashboard-state.ts";
import { Charts } from "./chart.ts";
import { chartRange } from "./chart-range.ts";
import { byId, fill, h, setAttribute, setText } from "./dom.ts";
import { EventsView } from "./events-view.ts";
import { count } from "./format.ts";
import { HostsView } from "./hosts-view.ts";
import { Model, needsAttention } from "./model.ts";
import { ProcessesView } from "./processes-view.ts";
import { RunView } from "./run-view.ts";
import { hashOf, routeOf, type View } from "./view.ts";

const RETRY_MS = 5000;
const ALL: readonly SeriesName[] = ["requests", "waitMs", "throttles", "hits", "failures", "refused"];
/** The series of a store, which has no events of the processes. */
const COUNTED: readonly SeriesName[] = ["requests", "waitMs", "refused"];
const TABS: Readonly<Record<string, string>> = { hosts: "Hosts", events: "Events", processes: "Processes", run: "Run" };

class Page {
  #model: Model | undefined;
  #charts: Charts | undefined;
  #views: ReadonlyMap<string, View> = new Map();
  #shown = "";
  #isLive = false;
  #isScheduled = false;

  start(): void {
    // The token is in a cookie now, so it is removed from the address bar.
    if (location.search.includes("token=")) history.replaceState(null, "", location.pathname + location.hash);
    window.addEventListener("hashchange", () => this.#showRoute());
    document.addEventListener("keydown", event => this.#onKey(event));
    setInterval(() => this.#schedule(), 1000);
    this.#connect();
  }

  #connect(): void {
    const stream = new EventSource("stream");
    stream.addEventListener("state", event => this.#onState(JSON.parse(event.data)));
    stream.addEventListener("patch", event => this.#onPatch(JSON.parse(event.data)));
    stream.addEventListener("error", () => {
      const isClosed = stream.readyState === EventSource.CLOSED;
      this.#isLive = false;
      this.#showConnection(isClosed ? "refused" : "lost");
      // After an error status the browser does not connect again. A proxy sends one while the server restarts, and the
      // server if too many pages are connected.
      if (isClosed) setTimeout(() => this.#connect(), RETRY_MS);
    });
  }

  #onState(state: DashboardState): void {
    const before = this.#model?.state;
    this.#model = new Model(state);
    this.#isLive = true;
    const { about } = state;
    document.title = `${about.name} · docstokg`;
    setText(byId("source"), `${about.kind} ${about.name}`);
    // After a lost connection the views stay as they are, with their filters and the focus.
    const isSame = before?.about.kind === about.kind && (before.run === null) === (state.run === null);
    if (!isSame) this.#createViews(this.#model);
    this.#showConnection("live");
    this.#showRoute();
  }

  #createViews(model: Model): void {
    const { about, run } = model.state;
    this.#charts = new Charts(byId("charts"), new Set(about.hasOutcomes ? ALL : COUNTED));
    const views: [string, View][] = [
      ["hosts", new HostsView(model)],
      ["events", new EventsView(model)],
    ];
    // The folder of a run does not say which processes are at work.
    if (about.kind !== "run") views.push(["processes", new ProcessesView()]);
    if (run !== null) views.unshift(["run", new RunView()]);
    this.#views = new Map(views);
    this.#shown = "";
  }

  #onPatch(patch: DashboardPatch): void {
    const model = this.#model;
    model?.apply(patch);
    // A run that has begun since gets its view. The others stay as they are, with their filters and the focus.
    if (model !== undefined && model.state.run !== null && !this.#views.has("run"))
      this.#views = new Map([["run", new RunView()], ...this.#views]);
    if (!this.#isLive) {
      this.#isLive = true;
      this.#showConnection("live");
    }
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled || document.hidden) return;
    this.#isScheduled = true;
    requestAnimationFrame(() => {
      this.#isScheduled = false;
      this.#draw();
    });
  }

  #draw(): void {
    const model = this.#model;
    if (model === undefined) return;
    const { totals, trouble, about } = model.state;
    const figures: readonly (readonly [string, number])[] =
      about.kind === "run"
        ? []
        : [
            ["open calls", totals.calls],
            ["in flight", totals.inFlight],
            ["queued", totals.waiting],
          ];
    fill(byId("totals"), ...figures.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, count(value)))));
    byId("trouble").hidden = trouble === null;
    setText(byId("trouble"), trouble ?? "");
    // While the connection is lost, the charts show the time before.
    if (this.#isLive) this.#charts?.draw(model.points, chartRange(model.state, model.points, model.nowMs));
    this.#views.get(this.#shown)?.update(model);
    this.#drawTabs(model);
  }

  #showRoute(): void {
    const model = this.#model;
    if (model === undefined) return;
    const { hash } = location;
    // `#main` is the link that skips to the content: the view stays.
    if (hash !== "" && !hash.startsWith("#/") && this.#shown !== "") {
      this.#draw();
      return;
    }
    const route = routeOf(hash);
    const first = [...this.#views.keys()][0] ?? "hosts";
    const tab = hash !== "" && this.#views.has(route.tab) ? route.tab : first;
    const view = this.#views.get(tab);
    if (view !== undefined && tab !== this.#shown) {
      this.#shown = tab;
      fill(byId("main"), view.element);
    }
    if (view instanceof HostsView) view.select(route.name);
    this.#draw();
  }

  #drawTabs(model: Model): void {
    const attention = [...model.hosts.values()].filter(needsAttention).length;
    const tabs = byId("tabs");
    const names = [...this.#views.keys()];
    if (tabs.childElementCount !== names.length)
      fill(tabs, ...names.map(name => h("a", { href: hashOf({ tab: name, name: "" }) })));
    for (const [index, name] of names.entries()) {
      const tab = tabs.children[index] as HTMLElement;
      setText(tab, `${TABS[name]}${name === "hosts" && attention > 0 ? ` (${count(attention)})` : ""}`);
      setAttribute(tab, "aria-current", name === this.#shown ? "page" : "false");
    }
  }

  #showConnection(state: "live" | "lost" | "refused"): void {
    const texts = {
      live: "live",
      lost: "disconnected: trying again",
      refused: "refused: trying again; if this continues, open the URL that the command has printed",
    };
    const connection = byId("connection");
    setAttribute(connection, "data-state", state);
    setText(connection, texts[state]);
    if (state !== "live" && this.#model === undefined) fill(byId("main"), h("p", { class: "empty" }, texts[state]));
  }

  /** `/` goes to the filter, numbers choose a view. */
  #onKey(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey || /^(?:INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
    const view = this.#views.get(this.#shown);
    if (event.key === "/" && (view instanceof HostsView || view instanceof EventsView)) {
      event.preventDefault();
      view.focusFilter();
    }
    const tab = [...this.#views.keys()][Number(event.key) - 1];
    if (tab !== undefined) location.hash = hashOf({ tab, name: "" });
  }
}

new Page().start();
