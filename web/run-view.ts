/** A run of `docstokg run`: works, failures by reason, yield of the resolvers, time left. */
import type { AboutState, RunState } from "../src/dashboard/dashboard-state.ts";
import { type OnResult, openActionDialog } from "./action-dialog.ts";
import { type Child, fill, h, setText } from "./dom.ts";
import { bytes, count, duration } from "./format.ts";
import type { Model } from "./model.ts";
import type { View } from "./view.ts";
import { WorkHistoryView } from "./work-history.ts";

export class RunView implements View {
  readonly element = h("div", { class: "view" });
  readonly #head = h("p", { class: "soft" });
  readonly #pause = h("button", { type: "button", hidden: true });
  readonly #result = h("p", { class: "result", role: "status" });
  readonly #body = h("div", {});
  readonly #history = new WorkHistoryView();
  #drawn = "";
  #about: AboutState | undefined;
  #isPaused = false;

  constructor() {
    // The history is not drawn again with the rest, so that its field keeps the focus.
    const scroller = h("div", { class: "scroller run" }, this.#body, this.#history.element);
    this.element.append(h("div", { class: "tools" }, this.#head, this.#pause), this.#result, scroller);
    this.#pause.addEventListener("click", () => this.#askToPause());
  }

  readonly #onResult: OnResult = (text, isApplied) => {
    setText(this.#result, text);
    this.#result.classList.toggle("warn", !isApplied);
  };

  #askToPause(): void {
    const title = this.#isPaused ? "Resume the run" : "Pause the run";
    openActionDialog({
      action: this.#isPaused ? "resume" : "pause",
      heading: title,
      title,
      effect: this.#isPaused
        ? "Requests are started again."
        : "No request is started until the run is resumed. Those in flight are finished.",
      order: () => ({}),
      token: this.#about?.actionToken ?? "",
      onResult: this.#onResult,
    });
  }

  #retryButton(failure: string): Child {
    const ask = () =>
      openActionDialog({
        action: "retry",
        heading: `Retry the works that failed with ${failure}`,
        title: "Retry the works",
        effect: "They are added to this run, also those that failed in earlier runs.",
        order: () => ({ failure }),
        token: this.#about?.actionToken ?? "",
        onResult: this.#onResult,
      });
    return h("button", { type: "button", class: "link", onclick: ask }, "Retry …");
  }

  /** A button that shows the history of the work. */
  #workName(key: string): Child {
    if (this.#history.element.hidden) return key;
    return h("button", { type: "button", class: "link", onclick: () => this.#history.show(key) }, key);
  }

  update({ state, nowMs }: Model): void {
    const { run } = state;
    if (run === null) {
      setText(this.#head, "");
      fill(this.#body, h("p", { class: "empty" }, "No run."));
      this.#history.element.hidden = true;
      return;
    }
    this.#history.element.hidden = state.about.kind === "store";
    this.#about = state.about;
    this.#isPaused = run.isPaused;
    this.#pause.hidden = run.state !== "running" || !state.about.actions.includes("pause");
    setText(this.#pause, run.isPaused ? "Resume …" : "Pause …");
    setText(this.#head, headText(run, nowMs));
    const drawn = JSON.stringify(run);
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    const canRetry = run.state === "running" && state.about.actions.includes("retry");
    const isOver = run.state !== "running" && run.failed + run.pending > 0;
    // A killed run has no recorded end.
    const endMs = run.state === "running" ? nowMs : run.endedMs;
    fill(
      this.#body,
      progressBar(run),
      tiles(run),
      h(
        "div",
        { class: "pair" },
        table(
          "Failed works by reason",
          ["reason", "works", ...(canRetry ? [""] : [])],
          run.failures.map(({ reason, works }) => [
            ...[reason, count(works)],
            ...(canRetry ? [this.#retryButton(reason)] : []),
          ]),
        ),
        table(
          "Resolvers",
          ["resolver", "works asked about", "files found", "yield"],
          run.resolvers.map(({ resolver, asked, stored }) => [
            resolver,
            count(asked),
            count(stored),
            asked === 0 ? "" : `${Math.round((stored / asked) * 100)} %`,
          ]),
        ),
      ),
      isOver &&
        h(
          "p",
          { class: "soft" },
          "To continue the unfinished works: ",
          h("code", {}, "docstokg retry"),
          ", for failed works of one reason: ",
          h("code", {}, "docstokg retry --reason <reason>"),
          ".",
        ),
      run.workers.length > 0 &&
        table(
          "Workers",
          ["worker", "works done", "failed", "taken", "files", "worked for"],
          run.workers.map(({ name, isAlive, done, failed, taken, bytes: received, startedMs }) => [
            isAlive ? name : `${name} (gone)`,
            ...[count(done), count(failed), count(taken), bytes(received)],
            endMs === null ? "" : duration(endMs - startedMs),
          ]),
        ),
      table(
        "Latest failed works",
        ["work", "reason", "message"],
        run.lastFailed.map(({ key, reason, message }) => [this.#workName(key), reason, message]),
        "texts",
      ),
    );
  }
}

function progressBar({ done, failed, pending, total }: RunState): HTMLElement {
  const label = `${done} of ${total} works done, ${failed} failed, ${pending} unfinished`;
  const bar = h("div", { class: "progress", role: "img", "aria-label": label });
  for (const [name, works] of Object.entries({ done, failed })) {
    const part = h("span", { class: name });
    part.style.width = `${total === 0 ? 0 : (works / total) * 100}%`;
    bar.append(part);
  }
  return bar;
}

function tiles({ done, failed, pending, total, files, bytes: stored }: RunState): HTMLElement {
  const figures = [
    [count(done), `of ${count(total)} works done`],
    [count(failed), "failed"],
    [count(pending), "unfinished"],
    [count(files), `files, ${bytes(stored)}`],
  ] as const;
  const items = figures.map(([figure, label]) => h("li", {}, h("b", {}, figure), h("span", {}, label)));
  return h("ul", { class: "tiles" }, ...items);
}

function headText({ command, state, isPaused, startedMs, endedMs, timeLeftMs }: RunState, nowMs: number): string {
  if (endedMs !== null) return `${command}: ${state} after ${duration(endedMs - startedMs)}`;
  const sinceStart = duration(nowMs - startedMs);
  if (state !== "running") return `${command}: ${state}, started ${sinceStart} ago`;
  const left = timeLeftMs === null ? "" : `, about ${duration(timeLeftMs)} left`;
  return `${command}: ${isPaused ? "paused, " : ""}${state} for ${sinceStart}${left}`;
}

/** Columns after the first one are numbers, and aligned to the right, unless `kind` says that they are texts. */
function table(
  title: string,
  names: readonly string[],
  rows: readonly (readonly Child[])[],
  kind: "numbers" | "texts" = "numbers",
): HTMLElement {
  if (rows.length === 0) return h("section", {}, h("h3", {}, title), h("p", { class: "soft" }, "None."));
  const head = h("tr", {}, ...names.map(name => h("th", { scope: "col" }, name)));
  const body = rows.map(([first = "", ...cells]) =>
    h("tr", {}, h("th", { scope: "row" }, first), ...cells.map(cell => h("td", {}, cell))),
  );
  return h(
    "section",
    {},
    h("h3", {}, title),
    h("table", { class: kind }, h("thead", {}, head), h("tbody", {}, ...body)),
  );
}
