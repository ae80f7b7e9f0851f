/** Tells the operator that hosts are missing from the list, and asks the processes for one of them. */
import type { AskResult } from "../src/dashboard/dashboard-state.ts";
import { h, setText } from "./dom.ts";
import { count } from "./format.ts";
import type { Model } from "./model.ts";
import { post } from "./post.ts";

export class HostQuestion {
  readonly element: HTMLElement;
  readonly #text = h("span");
  readonly #ask = h("button", { type: "button", onclick: () => void this.#send() }, "Ask the processes");
  readonly #answer = h("span", { role: "status" });
  #wanted = "";
  #token = "";

  constructor() {
    this.element = h("p", { class: "partial", hidden: true }, this.#text, " ", this.#ask, " ", this.#answer);
  }

  /** @param wanted the text of the filter */
  update({ state: { about, processes } }: Model, wanted: string, hasMatch: boolean): void {
    const partial = processes.filter(({ isPartial }) => isPartial);
    this.element.hidden = partial.length === 0;
    if (partial.length === 0) return;
    const subject = partial.length === 1 ? "1 process has" : `${count(partial.length)} processes have`;
    const published = Math.max(...partial.map(({ keys }) => keys));
    setText(
      this.#text,
      `Not all hosts are listed: ${subject} more keys than the ${count(published)} that a process publishes.`,
    );
    if (wanted !== this.#wanted) setText(this.#answer, "");
    this.#wanted = wanted;
    this.#token = about.actionToken;
    this.#ask.hidden = !about.canAsk || wanted === "" || hasMatch;
    setText(this.#ask, `Ask the processes for ${wanted}`);
  }

  async #send(): Promise<void> {
    this.#ask.disabled = true;
    setText(this.#answer, "Waiting for the processes …");
    try {
      const { text } = await post<AskResult>("ask", { name: this.#wanted }, this.#token);
      setText(this.#answer, `${text}.`);
    } catch (error) {
      setText(this.#answer, error instanceof Error ? error.message : "The server does not answer.");
    }
    this.#ask.disabled = false;
  }
}
