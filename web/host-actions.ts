/** The actions of an operator on a host, a role of it or a resolver. */
import type { HostActionName, HostState } from "../src/dashboard/dashboard-state.ts";
import { type ActionForm, openActionDialog } from "./action-dialog.ts";
import { h } from "./dom.ts";

interface ActionTexts {
  /** Of the button that opens the dialog. */
  readonly label: string;
  readonly title: string;
  readonly effect: string;
}

const TEXTS: Readonly<Record<HostActionName, ActionTexts>> = {
  open: {
    label: "Open …",
    title: "Open the circuit",
    effect: "All processes refuse requests to it until the time is over or the circuit is closed.",
  },
  close: {
    label: "Close …",
    title: "Close the circuit",
    effect:
      "All processes send requests again, also if the service of the host was open. Failure counts are cleared, and for " +
      "all roles the cooldowns end too.",
  },
  "half-open": {
    label: "Half-open …",
    title: "Half-open the circuit",
    effect: "The next calls are trial calls, and their results decide.",
  },
  hold: {
    label: "Hold …",
    title: "Hold the calls",
    effect: "Calls wait in the queue until the time is over, or are refused if they may not wait that long.",
  },
  release: {
    label: "Release …",
    title: "Release the calls",
    effect:
      "Calls that an operator holds are sent again, as the rate limits allow. A pause that the server asked for stays.",
  },
  "set-limit": {
    label: "Set limit …",
    title: "Set the limit",
    effect:
      "All processes keep these limits in addition to those of the policy until the time is over or the limit is reset: " +
      "each role for itself, or all roles together as a total. Windows keep what they have counted. The order replaces " +
      "the one before.",
  },
  "reset-limit": {
    label: "Reset limit …",
    title: "Reset the limit",
    effect: "The limits of the policy apply again. For all roles, those of the total too.",
  },
};
const TIMED: ReadonlySet<HostActionName> = new Set(["open", "hold", "set-limit"]);
const RATE_HINT = "such as 2/SECOND or 2/SECOND+100/HOUR";
const ROLES = ["metadata", "landing", "artifact"];

export function actionButtons(
  host: HostState,
  actions: readonly HostActionName[],
  { token, onResult }: Pick<ActionForm, "token" | "onResult">,
): readonly HTMLElement[] {
  return actions.map(action =>
    h(
      "button",
      { type: "button", onclick: () => openHostDialog(action, host, { token, onResult }) },
      TEXTS[action].label,
    ),
  );
}

function openHostDialog(
  action: HostActionName,
  host: HostState,
  { token, onResult }: Pick<ActionForm, "token" | "onResult">,
): void {
  const hasDuration = TIMED.has(action);
  const isLimit = action === "set-limit" || action === "reset-limit";
  const roles = host.kind === "resolver" ? [] : isLimit ? [...ROLES, "total"] : ROLES;
  const role = h(
    "select",
    { name: "role" },
    h("option", { value: "" }, action === "set-limit" ? "each role" : "all roles"),
    ...roles.map(name => h("option", {}, name)),
  );
  const seconds = h("input", { type: "number", name: "seconds", min: 1, max: 31_622_400, value: 300, required: true });
  const rates = h("input", {
    type: "text",
    name: "rates",
    placeholder: RATE_HINT,
    autocomplete: "off",
  });
  const slots = h("input", { type: "number", name: "slots", min: 1, placeholder: "as now" });
  const force = h("input", { type: "checkbox", name: "force" });
  const hasRates = action === "set-limit";
  const { title, effect } = TEXTS[action];
  openActionDialog({
    ...{ action, heading: `${title} of ${host.name}`, title, effect, token, onResult },
    fields: [
      roles.length > 0 && h("label", {}, "Role", role),
      hasRates && h("label", {}, "Rates", rates),
      hasRates && h("label", {}, "Requests in flight", slots),
      hasDuration && h("label", {}, "Seconds", seconds),
      hasRates && h("label", { class: "check" }, force, "Replace the policy, also by looser limits"),
    ],
    order: () => ({
      ...{ host: host.name, role: role.value },
      ...(hasDuration && { seconds: Number(seconds.value) }),
      ...(hasRates && { rates: rates.value, force: force.checked }),
      ...(hasRates && slots.value !== "" && { maxConcurrent: Number(slots.value) }),
    }),
  });
}
