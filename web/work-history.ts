/** The attempts of one work of a run, which is chosen by its identifier. */
import type { WorkHistoryState } from "../src/dashboard/dashboard-state.ts";
import { fill, h } from "./dom.ts";
import { clock, duration, plural } from "./format.ts";

export class WorkHistoryView {
  readonly element: HTMLElement;
  readonly #key = h("input", {
    type: "search",
    "aria-label": "Identifier of a work",
    placeholder: "doi:10.1000/182",
    maxlength: 500,
    autocomplete: "off",
  });
  readonly #result = h("div", { class: "history", role: "status" });
  /** The key that was asked for last: an older response is not shown. */
  #asked = "";

  constructor() {
    const form = h("form", { class: "lookup" }, this.#key, h("button", { type: "submit" }, "Show"));
    form.addEventListener("submit", event => {
      event.preventDefault();
      void this.#load(this.#key.value.trim());
    });
    this.element = h("section", {}, h("h3", {}, "History of a work"), form, this.#result);
  }

  show(key: string): void {
    this.#key.value = key;
    this.element.scrollIntoView({ block: "nearest" });
    void this.#load(key);
  }

  async #load(key: string): Promise<void> {
    this.#asked = key;
    fill(this.#result, h("p", { class: "soft" }, key === "" ? "" : "Loading …"));
    if (key === "") return;
    try {
      const response = await fetch(`work?${new URLSearchParams({ key })}`);
      if (!response.ok && response.status !== 404) throw new Error((await response.text()).trim());
      const shown =
        response.status === 404
          ? [h("p", { class: "soft" }, `The run has no work ${key}.`)]
          : historyOf(await response.json());
      if (key === this.#asked) fill(this.#result, ...shown);
    } catch (error) {
      if (key !== this.#asked) return;
      fill(this.#result, h("p", { class: "soft" }, error instanceof Error ? error.message : ""));
    }
  }
}

function historyOf({ key, title, state, reason, message, attempts }: WorkHistoryState): readonly HTMLElement[] {
  const parts = [reason, message].filter(part => part !== undefined && part !== "");
  const summary = `${key}: ${state}${parts.length === 0 ? "" : ` (${parts.join(": ")})`}`;
  const names = ["ended", "step", "resolver", "host", "status", "reason", "took", "message"];
  const rows = attempts.map(attempt => [
    clock(attempt.endedMs),
    attempt.step,
    attempt.resolver,
    attempt.host ?? "",
    attempt.status === undefined ? "" : String(attempt.status),
    attempt.reason,
    duration(attempt.elapsedMs),
    attempt.message ?? "",
  ]);
  return [
    ...(title === undefined ? [] : [h("p", {}, title)]),
    h("p", { class: "soft" }, `${summary}. ${plural(attempts.length, "request")}.`),
    ...(rows.length === 0
      ? []
      : [
          h(
            "table",
            {},
            h("thead", {}, h("tr", {}, ...names.map(name => h("th", { scope: "col" }, name)))),
            h("tbody", {}, ...rows.map(cells => h("tr", {}, ...cells.map(cell => h("td", {}, cell))))),
          ),
        ]),
  ];
}
