import { limitsText } from "../policy/limit-order-check.ts";
import type { HostAction, RunAction } from "./actions.ts";
import type { ActionName, ActionResult, EventRow } from "./dashboard-state.ts";

/** An action of an operator, after it was carried out. */
export interface PerformedAction {
  /** The name of the action. */
  readonly action: ActionName;
  /** The host, service or resolver, with its role (`api.example.org (landing)`), or `the run`. */
  readonly target: string;
  /** For `open`, `hold` and `set-limit`: how long. */
  readonly seconds: number;
  /** For `set-limit`: `2/SECOND, max_concurrent 3`, and `, forced` if these replace the policy; otherwise empty. */
  readonly rates: string;
  /** The reason that the operator has given. */
  readonly reason: string;
  /** The address of the browser. */
  readonly from: string;
  /** `applied by 3 of 3 processes`. */
  readonly result: string;
}

/** The action as the application gets it. */
export function performedAction(action: HostAction | RunAction, from: string, { text }: ActionResult): PerformedAction {
  const { name, targetText: target, reason } = action;
  const seconds = "seconds" in action ? action.seconds : 0;
  return { action: name, target, seconds, rates: ratesText(action), reason, from, result: text };
}

/** The action as a line of the page. */
export function actionLine(
  action: HostAction | RunAction,
  from: string,
  { text, isApplied }: ActionResult,
): Omit<EventRow, "seq" | "atMs"> {
  return {
    type: "operator",
    ...hostAndRoleOf(action),
    text: `${VERBS[action.name](action)} by an operator (${from}): ${action.reason}; ${text}`,
    level: isApplied ? "info" : "warn",
    isRoutine: false,
  };
}

/** The beginning of the line, before "by an operator". */
const VERBS: Readonly<Record<ActionName, (action: HostAction | RunAction) => string>> = {
  open: action => `opened for ${"seconds" in action ? action.seconds : 0} s`,
  close: () => "closed",
  "half-open": () => "half-opened",
  hold: action => `held for ${"seconds" in action ? action.seconds : 0} s`,
  release: () => "released",
  "set-limit": action => `limit set to ${ratesText(action)} for ${"seconds" in action ? action.seconds : 0} s`,
  "reset-limit": () => "limit reset",
  pause: () => "run paused",
  resume: () => "run resumed",
  retry: ({ targetText }) => `${targetText} retried`,
};

function ratesText(action: HostAction | RunAction): string {
  if (!("rates" in action) || action.name !== "set-limit") return "";
  return `${limitsText(action)}${action.isForced ? ", forced" : ""}`;
}

/** The host and role that an action concerns; empty for the run. */
function hostAndRoleOf(action: HostAction | RunAction): { readonly host: string; readonly role: string } {
  if (!("target" in action)) return { host: "", role: "" };
  const { target } = action;
  if ("resolver" in target) return { host: `resolver ${target.resolver}`, role: "" };
  return { host: target.unit, role: target.role ?? "" };
}
