/** Asks the operator to confirm an action and to give a reason, sends the action, and shows the result. */
import type { ActionName, ActionResult } from "../src/dashboard/dashboard-state.ts";
import { type Child, fill, h, setText } from "./dom.ts";
import { post } from "./post.ts";

/** Shows the result after the dialog is closed. */
export type OnResult = (text: string, isApplied: boolean) => void;

export interface ActionForm {
  readonly action: ActionName;
  /** `Open the circuit of api.example.org`. */
  readonly heading: string;
  /** `Open the circuit`: the text of the button. */
  readonly title: string;
  readonly effect: string;
  /** Labels with further fields. */
  readonly fields?: readonly Child[];
  /** The fields that are sent besides the action and the reason. */
  readonly order: () => object;
  readonly token: string;
  readonly onResult: OnResult;
}

export function openActionDialog({ action, heading, title, effect, fields = [], order, token, onResult }: ActionForm) {
  const reason = h("input", { type: "text", name: "reason", maxlength: 200, required: true, autocomplete: "off" });
  const problem = h("p", { class: "problem", role: "alert" });
  const confirm = h("button", { type: "submit", class: "confirm" }, title);
  const cancel = h("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
  const form = h(
    "form",
    {},
    h("h2", {}, heading),
    h("p", { class: "soft" }, effect),
    ...fields,
    h("label", {}, "Reason", reason),
    problem,
    h("div", { class: "buttons" }, confirm, cancel),
  );
  const dialog = h("dialog", { "aria-label": heading }, form);
  form.addEventListener("submit", event => {
    event.preventDefault();
    confirm.disabled = true;
    setText(confirm, "Waiting for the processes …");
    post<ActionResult>("actions", { action, reason: reason.value, ...order() }, token)
      .then(result => {
        dialog.close();
        onResult(`${title}: ${result.text}.`, result.isApplied);
      })
      .catch((error: unknown) => {
        confirm.disabled = false;
        setText(confirm, title);
        fill(problem, error instanceof Error ? error.message : "The server does not answer.");
      });
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  reason.focus();
}
