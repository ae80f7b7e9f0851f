/** Asks the operator to confirm an action and to say why, sends it, and shows how many processes have applied it. */
import type { ActionName, ActionResult, HostState } from "../src/dashboard/dashboard-state.ts";
import { fill, h, setText } from "./dom.ts";

const TITLES: Readonly<Record<ActionName, string>> = {
  open: "Open the circuit",
  close: "Close the circuit",
  "half-open": "Half-open the circuit",
  hold: "Hold the calls",
  release: "Release the calls",
};
const EFFECTS: Readonly<Record<ActionName, string>> = {
  open: "All processes refuse requests to it until the time is over or the circuit is closed.",
  close: "All processes send requests again. Cooldowns and failure counts are cleared.",
  "half-open": "The next calls are trial calls, and their results decide.",
  hold: "Calls wait in the queue until the time is over, or are refused if they may not wait that long.",
  release:
    "Calls that an operator holds are sent again, as the rate limits allow. A pause that the server asked for stays.",
};

export interface ActionTarget {
  readonly host: HostState;
  readonly token: string;
  /** Shows the result after the dialog is closed. */
  readonly onResult: (text: string, isApplied: boolean) => void;
}

export function openActionDialog(action: ActionName, { host, token, onResult }: ActionTarget): void {
  const hasDuration = action === "open" || action === "hold";
  const roles = host.kind === "resolver" ? [] : ["metadata", "landing", "artifact"];
  const role = h(
    "select",
    { name: "role" },
    h("option", { value: "" }, "all roles"),
    ...roles.map(name => h("option", {}, name)),
  );
  const seconds = h("input", { type: "number", name: "seconds", min: 1, max: 31_622_400, value: 300, required: true });
  const reason = h("input", { type: "text", name: "reason", maxlength: 200, required: true, autocomplete: "off" });
  const problem = h("p", { class: "problem", role: "alert" });
  const confirm = h("button", { type: "submit", class: "confirm" }, TITLES[action]);
  const cancel = h("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
  const form = h(
    "form",
    {},
    h("h2", {}, `${TITLES[action]} of ${host.name}`),
    h("p", { class: "soft" }, EFFECTS[action]),
    roles.length > 0 && h("label", {}, "Role", role),
    hasDuration && h("label", {}, "Seconds", seconds),
    h("label", {}, "Reason", reason),
    problem,
    h("div", { class: "buttons" }, confirm, cancel),
  );
  const dialog = h("dialog", { "aria-label": `${TITLES[action]} of ${host.name}` }, form);
  form.addEventListener("submit", event => {
    event.preventDefault();
    confirm.disabled = true;
    setText(confirm, "Waiting for the processes …");
    const order = {
      action,
      host: host.name,
      role: role.value,
      reason: reason.value,
      ...(hasDuration && { seconds: Number(seconds.value) }),
    };
    send(order, token)
      .then(result => {
        dialog.close();
        onResult(`${TITLES[action]}: ${result.text}.`, result.isApplied);
      })
      .catch((error: unknown) => {
        confirm.disabled = false;
        setText(confirm, TITLES[action]);
        fill(problem, error instanceof Error ? error.message : "The server does not answer.");
      });
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  reason.focus();
}

async function send(order: object, token: string): Promise<ActionResult> {
  const response = await fetch("actions", {
    method: "POST",
    headers: { "content-type": "application/json", "x-docstokg-action": token },
    body: JSON.stringify(order),
  });
  if (!response.ok) throw new Error((await response.text()).trim());
  return response.json();
}
