/** Everything about one host: circuits, limits of each role, policy with sources, its latest events. */
import type { CircuitRowState, HostState, KeyState, OrderState } from "../src/dashboard/dashboard-state.ts";
import { fill, h, setText, visible } from "./dom.ts";
import { eventLine } from "./events-view.ts";
import { count, duration, plural, timeLeft } from "./format.ts";
import { actionButtons } from "./host-actions.ts";
import { isStopped, meter, setMeter } from "./meter.ts";
import type { Model } from "./model.ts";
import { hostActions } from "./useful-actions.ts";

const EVENTS_SHOWN = 12;
const ROLES = ["metadata", "landing", "artifact"];

interface PolicyValue {
  readonly field: string;
  readonly value: unknown;
  readonly sources: readonly { readonly where: string; readonly path: string; readonly note?: string }[];
}

export class HostPanel {
  readonly element: HTMLElement;
  readonly #title = h("h2", { tabindex: -1 });
  readonly #state = h("p", { class: "state" });
  readonly #actions = h("div", { class: "actions" });
  readonly #roles = h("div", { class: "roles" });
  readonly #policy = h("div", { class: "policy" });
  readonly #events = h("ol", { class: "events" });
  readonly #role = h("select", { "aria-label": "Role of the policy" }, ...ROLES.map(role => h("option", {}, role)));
  readonly #result = h("p", { class: "result", role: "status" });
  #name = "";
  #actionsFor = "";
  #drawn = "";

  constructor(onClose: () => void) {
    const close = h(
      "button",
      { type: "button", class: "close", "aria-label": "Close the panel", onclick: onClose },
      "×",
    );
    this.element = h(
      "aside",
      { class: "panel", "aria-label": "Selected host", hidden: true },
      h("header", {}, this.#title, close),
      this.#state,
      this.#actions,
      this.#result,
      this.#roles,
      h("h3", {}, "Policy ", this.#role),
      this.#policy,
      h("h3", {}, "Latest events"),
      this.#events,
    );
    this.element.addEventListener("keydown", event => {
      if (event.key === "Escape") onClose();
    });
    this.#role.addEventListener("change", () => void this.#loadPolicy());
  }

  show(name: string, host: HostState | undefined, model: Model): void {
    this.element.hidden = name === "";
    if (name === "") {
      this.#name = "";
      return;
    }
    const isNew = name !== this.#name;
    this.#name = name;
    setText(this.#title, name);
    this.#showState(host, model.nowMs);
    this.#showActions(host, model, isNew);
    // Rebuilt only when a shown text changed, so that a selection in it survives.
    const drawn = JSON.stringify([host, timesLeft(host, model.nowMs)]);
    if (drawn !== this.#drawn || isNew) {
      this.#drawn = drawn;
      fill(this.#roles, ...(host === undefined ? [] : sectionsOf(host, model.nowMs)));
    }
    const events = model.events.filter(event => event.host === name && !event.isRoutine).slice(-EVENTS_SHOWN);
    fill(this.#events, ...events.reverse().map(event => eventLine(event, false)));
    if (events.length === 0) fill(this.#events, h("li", { class: "soft" }, "None."));
    if (!isNew) return;
    const firstRole = host?.keys[0]?.role;
    if (firstRole !== undefined) this.#role.value = firstRole;
    this.#title.focus();
    void this.#loadPolicy();
  }

  #showActions(host: HostState | undefined, { state: { about }, hosts }: Model, isNew: boolean): void {
    if (isNew) setText(this.#result, "");
    const actions = host === undefined ? [] : hostActions(host, about.actions, hosts.values());
    const wanted = JSON.stringify([host?.name, actions, about.actionToken]);
    if (wanted === this.#actionsFor) return;
    this.#actionsFor = wanted;
    const onResult = (text: string, isApplied: boolean) => {
      // After the dialog was closed, another host may have been selected.
      setText(this.#result, host === undefined || host.name === this.#name ? text : `${host.name}: ${text}`);
      this.#result.classList.toggle("warn", !isApplied);
    };
    const buttons = host === undefined ? [] : actionButtons(host, actions, { token: about.actionToken, onResult });
    fill(this.#actions, ...buttons);
  }

  #showState(host: HostState | undefined, nowMs: number): void {
    if (host === undefined) {
      fill(this.#state, "No current state of this host: it was not called recently.");
      return;
    }
    const badge = h("b", { class: `badge ${host.state}` }, `circuit ${host.state.replace("_", "-")}`);
    const reason = host.reason === null ? "" : ` ${host.reason}`;
    const left = leftText(host.untilMs, nowMs);
    const failures = host.windowFailures > 0 ? ` ${plural(host.windowFailures, "failure")} in the rolling window.` : "";
    fill(this.#state, badge, `${reason}${left}${reason === "" ? "" : "."}${failures}`);
  }

  async #loadPolicy(): Promise<void> {
    const name = this.#name;
    const role = this.#role.value;
    fill(this.#policy, h("p", { class: "soft" }, "Loading …"));
    try {
      const query = new URLSearchParams({ name, role });
      const response = await fetch(`policy?${query}`);
      if (!response.ok) throw new Error((await response.text()).trim());
      const values: readonly PolicyValue[] = await response.json();
      if (name !== this.#name || role !== this.#role.value) return;
      fill(this.#policy, policyTable(values));
    } catch (error) {
      if (name === this.#name && role === this.#role.value)
        fill(this.#policy, h("p", { class: "soft" }, error instanceof Error ? error.message : ""));
    }
  }
}

/** The texts of the sections that change with time, even if the host does not change. */
function timesLeft(host: HostState | undefined, nowMs: number): readonly string[] {
  const orders = host?.keys.flatMap(({ hold, order, totalOrder }) => [hold, order, totalOrder]) ?? [];
  const ends = [...(host?.circuits ?? []), ...orders].map(each => each?.untilMs ?? null);
  return ends.map(untilMs => leftText(untilMs, nowMs));
}

function sectionsOf(host: HostState, nowMs: number): readonly HTMLElement[] {
  const roles = new Set([...host.keys.map(({ role }) => role), ...host.circuits.map(({ role }) => role)]);
  return [...roles].map(role => {
    const key = host.keys.find(one => one.role === role);
    const circuit = host.circuits.find(one => one.role === role);
    return h(
      "section",
      {},
      h("h3", {}, role === "" ? "circuit" : role),
      ...(key?.windows.map(window => windowLine(window, key)) ?? []),
      key !== undefined && key.windows.length === 0 && h("p", { class: "soft" }, "No rate limit."),
      ...(key === undefined ? [] : orderLines(host, key, nowMs)),
      h("dl", {}, ...facts(host, key, circuit, nowMs)),
    );
  });
}

/** The orders of operators for the key: by whom, why, until when, and whether they are looser than the policy. */
function orderLines({ name }: HostState, { hold, order, totalOrder }: KeyState, nowMs: number): readonly HTMLElement[] {
  const lines: HTMLElement[] = [];
  if (hold !== null) {
    const what = hold.target === name ? "Held" : `${hold.target} is held`;
    lines.push(h("p", { class: "order" }, `${what} by an operator${leftText(hold.untilMs, nowMs)}: ${hold.reason}`));
  }
  if (order !== null) lines.push(orderLine("Limit", order, nowMs));
  if (totalOrder !== null) {
    const of = totalOrder.owner === name ? "" : ` of ${totalOrder.owner}`;
    lines.push(orderLine(`Total${of}`, totalOrder, nowMs));
  }
  return lines;
}

function orderLine(what: string, order: OrderState, nowMs: number): HTMLElement {
  const { limits, policyLimits, by, reason, untilMs, isLooser } = order;
  const instead = policyLimits === "" ? "no limit" : policyLimits;
  const text = `${what} ${limits} instead of ${instead}${leftText(untilMs, nowMs)}, ordered by ${by}: ${reason}`;
  const badge = isLooser && h("b", { class: "badge open" }, "looser than the policy");
  return h("p", { class: "order" }, badge, badge ? " " : "", text);
}

function leftText(untilMs: number | null, nowMs: number): string {
  return untilMs === null ? "" : `, ${timeLeft(untilMs, nowMs)} left`;
}

function windowLine({ rate, used, limit, isLearned }: KeyState["windows"][number], key: KeyState): HTMLElement {
  const bar = meter("");
  setMeter(
    bar,
    limit === 0 ? 0 : used / limit,
    isStopped(key),
    `${used} of ${limit} used in any ${rate.split("/")[1] ?? ""}`,
  );
  const note = isLearned
    ? h("abbr", { title: "announced by the server; the policy would allow more" }, "*")
    : undefined;
  return h(
    "p",
    { class: "window" },
    h("span", {}, rate, note),
    bar,
    h("span", { class: "number" }, `${count(used)} / ${count(limit)}`),
  );
}

function facts(
  host: HostState,
  key: KeyState | undefined,
  circuit: CircuitRowState | undefined,
  nowMs: number,
): readonly HTMLElement[] {
  const rows: [string, string][] = [];
  const isRefused = host.isCooling || circuit?.state === "open";
  if (key !== undefined) {
    const cap = key.maxConcurrent === null ? "" : ` of ${count(key.maxConcurrent)}`;
    rows.push(
      ["queued", count(key.waiting)],
      ["new call", isRefused ? "refused: open" : key.newCallMs > 0 ? `in ${duration(key.newCallMs)}` : "now"],
      ["in flight", `${count(key.inFlight)}${cap}`],
      ["limited by", key.limitedBy ?? "nothing"],
      ["pace", `${Math.round(key.pace * 100)} %${key.shape === "smooth" ? ", evenly spaced" : ""}`],
      ["guard", `${key.guardMs} ms`],
      ["granted", count(key.acquired)],
      ["refused", count(key.refused)],
    );
    if (key.decidedBy !== null) rows.push(["decided by", shortSource(key.decidedBy)]);
    if (key.processes > 1) rows.push(["processes", count(key.processes)]);
  }
  if (circuit !== undefined) {
    const left = leftText(circuit.untilMs, nowMs);
    const trials = circuit.probes > 0 ? `, ${plural(circuit.probes, "trial call")}` : "";
    rows.push(["circuit", `${circuit.state.replace("_", "-")}${left}${trials}`]);
    if (circuit.failures !== null && circuit.state === "closed")
      rows.push(["failures in a row", count(circuit.failures)]);
  }
  return rows.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)));
}

/** Each value with its effective source. The title of the row lists all sources. */
function policyTable(values: readonly PolicyValue[]): HTMLElement {
  const rows = values.map(({ field, value, sources }) => {
    const effective = sources.at(-1);
    const all = sources.map(({ where, path }) => `${where} ${path}`).join("\n");
    const title = visible(effective?.note === undefined ? all : `${effective.note}\n${all}`);
    const shown = Array.isArray(value)
      ? value.join(" + ")
      : typeof value === "object"
        ? JSON.stringify(value)
        : String(value);
    return h(
      "tr",
      { title },
      h("th", { scope: "row" }, field),
      h("td", {}, shown),
      h("td", { class: "soft" }, shortSource(effective?.where ?? "")),
    );
  });
  const head = h("tr", {}, ...["setting", "value", "decided by"].map(text => h("th", { scope: "col" }, text)));
  return h("table", {}, h("thead", {}, head), h("tbody", {}, ...rows));
}

/** Only the last part of a path, which distinguishes the files. */
function shortSource(where: string): string {
  return where.includes("/") ? `…/${where.split("/").at(-1)}` : where;
}
