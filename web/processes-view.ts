/** The processes that share the limits. */
import { fill, h, setText } from "./dom.ts";
import { count, duration, plural } from "./format.ts";
import type { Model } from "./model.ts";
import type { View } from "./view.ts";

/**
 * A process with open calls that has published nothing for longer may have ended. A process without open calls is never
 * marked.
 */
const SILENT_MS = 5000;

export class ProcessesView implements View {
  readonly element: HTMLElement;
  readonly #summary = h("p", { class: "soft", role: "status" });
  readonly #body = h("tbody");
  readonly #empty = h("p", { class: "empty" }, "No process is listed.");

  constructor() {
    const names = ["process", "machine", "open calls", "in flight", "queued", "keys", "running", "updated"];
    const head = h("thead", {}, h("tr", {}, ...names.map(name => h("th", { scope: "col" }, name))));
    const table = h("table", { class: "wide-table" }, head, this.#body);
    this.element = h(
      "div",
      { class: "view" },
      h("div", { class: "tools" }, this.#summary),
      h("div", { class: "scroller" }, table, this.#empty),
    );
  }

  update({ state, nowMs }: Model): void {
    const { processes } = state;
    const machines = new Set(processes.map(({ machine }) => machine)).size;
    setText(
      this.#summary,
      `${count(processes.length)} ${processes.length === 1 ? "process" : "processes"} on ${plural(machines, "machine")}`,
    );
    this.#empty.hidden = processes.length > 0;
    const rows = processes.map(process => {
      const { pid, program, machine, calls, inFlight, waiting, keys, isPartial, startedMs, writtenMs } = process;
      const ageMs = writtenMs === null ? 0 : Math.max(0, nowMs - writtenMs);
      const isSilent = ageMs > SILENT_MS && calls > 0;
      const updated = writtenMs === null ? "live" : `${duration(ageMs)} ago`;
      return h(
        "tr",
        {},
        h("th", { scope: "row" }, `${program} `, h("span", { class: "soft" }, `pid ${pid}`)),
        h("td", { class: "text" }, machine),
        ...[calls, inFlight, waiting].map(value => h("td", {}, count(value))),
        h("td", {}, isPartial ? `more than ${count(keys)}` : count(keys)),
        h("td", {}, duration(Math.max(0, nowMs - startedMs))),
        h("td", isSilent ? { class: "warn" } : {}, isSilent ? `silent for ${duration(ageMs)}` : updated),
      );
    });
    fill(this.#body, ...rows);
  }
}
