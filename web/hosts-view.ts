/** The hosts by the attention that they need, and the panel of the selected one. */
import type { HostState, KeyState } from "../src/dashboard/dashboard-state.ts";
import { fill, h, setAttribute, setText, visible } from "./dom.ts";
import { count, duration, timeLeft } from "./format.ts";
import { HostPanel } from "./host-panel.ts";
import { HostQuestion } from "./host-question.ts";
import { isStopped, meter, setMeter } from "./meter.ts";
import { type Model, needsAttention } from "./model.ts";
import { hashOf, type View } from "./view.ts";
import { VirtualList } from "./virtual-list.ts";

const STATES = { open: "open", half_open: "half-open", closed: "closed" } as const;

export class HostsView implements View {
  readonly element: HTMLElement;
  readonly #list: VirtualList<HostState>;
  readonly #filter = h("input", {
    type: "search",
    placeholder: "Filter hosts",
    "aria-label": "Filter hosts",
    autocomplete: "off",
    spellcheck: "false",
  });
  readonly #onlyAttention = h("input", { type: "checkbox", id: "only-attention" });
  readonly #summary = h("p", { class: "soft", role: "status" });
  readonly #empty = h("p", { class: "empty" });
  readonly #question = new HostQuestion();
  readonly #panel: HostPanel;
  readonly #body: HTMLElement;
  #model: Model;
  #selected = "";

  constructor(model: Model) {
    this.#model = model;
    this.#list = new VirtualList<HostState>("Hosts", {
      key: host => host.name,
      create: () => this.#createRow(),
      update: (row, host) => this.#updateRow(row, host),
    });
    this.#panel = new HostPanel(() => {
      location.hash = hashOf({ tab: "hosts", name: "" });
      this.#list.focusItem(this.#selected);
    });
    const head = h(
      "div",
      { class: "row head", "aria-hidden": "true" },
      ...["", "host", "used", "queued", "new call", "in flight", "attention"].map(text => h("span", {}, text)),
    );
    const tools = h(
      "div",
      { class: "tools" },
      this.#filter,
      h("label", { for: "only-attention" }, this.#onlyAttention, "Needs attention"),
      this.#summary,
    );
    this.#body = h(
      "div",
      { class: "split" },
      h("div", { class: "listing" }, head, this.#list.element, this.#empty, this.#question.element),
    );
    this.#body.append(this.#panel.element);
    this.element = h("div", { class: "view hosts" }, tools, this.#body);
    this.#filter.addEventListener("input", () => this.update(this.#model));
    this.#onlyAttention.addEventListener("change", () => this.update(this.#model));
    this.#list.element.addEventListener("keydown", event => this.#onKey(event));
  }

  select(name: string): void {
    this.#selected = name;
    this.update(this.#model);
  }

  focusFilter(): void {
    this.#filter.focus();
  }

  update(model: Model): void {
    this.#model = model;
    const wanted = this.#filter.value.trim().toLowerCase();
    const all = model.sortedHosts();
    const hosts = all.filter(
      host =>
        (wanted === "" || host.name.toLowerCase().includes(wanted) || host.why.toLowerCase().includes(wanted)) &&
        (!this.#onlyAttention.checked || needsAttention(host)),
    );
    this.#list.set(hosts);
    const attention = all.filter(needsAttention).length;
    setText(
      this.#summary,
      `${count(all.length)} hosts and services, ${attention === 0 ? "none needs" : `${count(attention)} need${attention === 1 ? "s" : ""}`} attention`,
    );
    this.#empty.hidden = hosts.length > 0;
    const none =
      model.state.about.kind === "store"
        ? "No process has used this store in the last minute."
        : "No request has been sent yet.";
    setText(this.#empty, all.length === 0 ? none : "No host matches the filter.");
    // A host without keys is no match: it is known only from a record in the store.
    const hasMatch = hosts.some(({ keys }) => keys.length > 0);
    this.#question.update(model, wanted, hasMatch);
    const selected = model.hosts.get(this.#selected);
    this.#body.classList.toggle("open", this.#selected !== "");
    this.#panel.show(this.#selected, selected, model);
  }

  #onKey(event: KeyboardEvent): void {
    const steps: Readonly<Record<string, number>> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: 10,
      PageUp: -10,
      Home: -1e6,
      End: 1e6,
    };
    const by = steps[event.key];
    if (by === undefined) return;
    event.preventDefault();
    this.#list.moveFocus(by);
  }

  #createRow(): HTMLElement {
    const open = h(
      "button",
      {
        type: "button",
        onclick: event => {
          const row = (event.currentTarget as HTMLElement).closest<HTMLElement>("[data-key]");
          location.hash = hashOf({ tab: "hosts", name: row?.dataset["key"] ?? "" });
        },
      },
      ...["dot", "name", "bars", "number queued", "number call", "number flight", "why"].map(name =>
        h("span", { class: name }),
      ),
    );
    return h("div", {}, open);
  }

  #updateRow(row: HTMLElement, host: HostState): void {
    const button = row.firstElementChild as HTMLElement;
    const [dot, name, bars, queued, call, flight, why] = [...button.children] as HTMLElement[];
    if (!dot || !name || !bars || !queued || !call || !flight || !why) return;
    const { nowMs } = this.#model;
    const state = STATES[host.state];
    setAttribute(row, "data-state", host.state);
    setAttribute(button, "aria-current", String(host.name === this.#selected));
    setAttribute(dot, "title", `circuit ${state}`);
    setText(name, host.name);
    updateBars(bars, host.keys);
    const waiting = host.keys.reduce((sum, key) => sum + key.waiting, 0);
    const newCallMs = Math.max(0, ...host.keys.map(key => key.newCallMs));
    setText(queued, waiting > 0 ? count(waiting) : "");
    setText(call, newCallMs > 0 ? duration(newCallMs) : "");
    const inFlight = host.keys.reduce((sum, key) => sum + key.inFlight, 0);
    setText(flight, inFlight > 0 ? count(inFlight) : "");
    const left = host.untilMs === null ? "" : `, ${timeLeft(host.untilMs, nowMs)} left`;
    setText(why, host.why === "" ? "" : `${host.why}${left}`);
    setAttribute(
      button,
      "aria-label",
      visible(
        `${host.name}, circuit ${state}${host.why === "" ? "" : `, ${host.why}${left}`}, ${waiting} queued, ${inFlight} in flight`,
      ),
    );
  }
}

/** One bar for each role: its fullest window. */
function updateBars(container: HTMLElement, keys: readonly KeyState[]): void {
  if (container.childElementCount !== keys.length) fill(container, ...keys.map(() => meter("")));
  for (const [index, key] of keys.entries()) {
    const fullest = key.windows.toSorted((a, b) => b.used / b.limit - a.used / a.limit)[0];
    const text =
      fullest === undefined
        ? "unlimited"
        : `${fullest.used} of ${fullest.rate}${fullest.isLearned ? " (announced)" : ""}`;
    const share = fullest === undefined || fullest.limit === 0 ? 0 : fullest.used / fullest.limit;
    setMeter(container.children[index] as HTMLElement, share, isStopped(key), `${key.role}: ${text}`);
  }
}
