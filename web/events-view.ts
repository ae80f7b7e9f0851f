/** The event stream, filtered. */
import type { EventRow } from "../src/dashboard/dashboard-state.ts";
import { fill, h, setText } from "./dom.ts";
import { clock, count } from "./format.ts";
import type { Model } from "./model.ts";
import { hashOf, type View } from "./view.ts";

const SHOWN_MAX = 300;

export class EventsView implements View {
  readonly element: HTMLElement;
  readonly #text = h("input", {
    type: "search",
    placeholder: "Filter by host, type or text",
    "aria-label": "Filter events",
    autocomplete: "off",
  });
  readonly #level = h(
    "select",
    { "aria-label": "Which events" },
    h("option", { value: "notable" }, "Notable"),
    h("option", { value: "bad" }, "Failures and openings"),
    h("option", { value: "refused" }, "Notable, with refusals"),
    h("option", { value: "all" }, "All, a sample of ordinary requests"),
  );
  readonly #pause = h("button", { type: "button", "aria-pressed": "false" }, "Pause");
  readonly #summary = h("p", { class: "soft", role: "status" });
  readonly #list = h("ol", { class: "events", "aria-label": "Events, latest first" });
  #model: Model;
  #drawnSeq = -1;

  constructor(model: Model) {
    this.#model = model;
    const tools = h("div", { class: "tools" }, this.#text, this.#level, this.#pause, this.#summary);
    this.element = h("div", { class: "view" }, tools, h("div", { class: "scroller" }, this.#list));
    for (const input of [this.#text, this.#level]) input.addEventListener("input", () => this.#draw());
    this.#pause.addEventListener("click", () => {
      const isPaused = this.#pause.getAttribute("aria-pressed") === "true";
      this.#pause.setAttribute("aria-pressed", String(!isPaused));
      setText(this.#pause, isPaused ? "Pause" : "Continue");
      this.update(this.#model);
    });
  }

  focusFilter(): void {
    this.#text.focus();
  }

  update(model: Model): void {
    // The numbers of a server that was restarted begin again.
    const isDrawn = model === this.#model && (model.events.at(-1)?.seq ?? 0) === this.#drawnSeq;
    this.#model = model;
    if (this.#pause.getAttribute("aria-pressed") === "true" || isDrawn) return;
    this.#draw();
  }

  #draw(): void {
    const { events, state } = this.#model;
    this.#drawnSeq = events.at(-1)?.seq ?? 0;
    const wanted = this.#text.value.trim().toLowerCase();
    const level = this.#level.value;
    const found = events.filter(
      event =>
        isWanted(event, level) &&
        (wanted === "" || `${event.host} ${event.role} ${event.type} ${event.text}`.toLowerCase().includes(wanted)),
    );
    fill(
      this.#list,
      ...found
        .slice(-SHOWN_MAX)
        .reverse()
        .map(event => eventLine(event, true)),
    );
    if (found.length === 0)
      fill(
        this.#list,
        h("li", { class: "empty" }, events.length === 0 ? "No event yet." : "No event matches the filter."),
      );
    const note = state.about.hasEvents ? "" : ", changes that this page has seen";
    setText(this.#summary, `${count(Math.min(found.length, SHOWN_MAX))} of ${count(events.length)} events${note}`);
  }
}

function isWanted({ level, isRoutine }: EventRow, wanted: string): boolean {
  if (wanted === "bad") return level === "bad";
  return wanted === "all" || !isRoutine || (wanted === "refused" && level === "warn");
}

/** One event as a list item. */
export function eventLine({ atMs, type, host, role, text, level }: EventRow, hasHost: boolean): HTMLElement {
  const link = h("a", { href: hashOf({ tab: "hosts", name: host }) }, host);
  return h(
    "li",
    { "data-level": level },
    h("time", { datetime: new Date(atMs).toISOString() }, clock(atMs)),
    h(
      "span",
      { class: "what" },
      hasHost && host !== "" && link,
      role !== "" && h("span", { class: "soft" }, role),
      h("span", {}, text),
    ),
    h("code", {}, type),
  );
}
