import { breakerReasonText } from "../../breaker/breaker-reason.ts";
import { type DecidedBy, describeConstraint } from "../../errors.ts";
import type { Role } from "../../policy/roles.ts";
import { isServiceName } from "../../policy/service-name.ts";
import { painter } from "../output/colour.ts";
import { formatWait } from "../output/duration.ts";
import { formatCount } from "../output/format.ts";
import { printable } from "../output/printable.ts";
import { formatPairs, formatTable, terminalWidth } from "../output/table.ts";
import type { Io } from "../program.ts";
import { unknownText } from "./asked-processes.ts";
import { orderText } from "./limit-rates.ts";
import { type PolicyInUse, policySourceText } from "./policy-in-use.ts";
import type { CacheFacts, PolicyFacts, ProcessFacts, SharedFacts } from "./why-facts.ts";
import { roleState, type WhyVerdict } from "./why-verdict.ts";

const COLOURS = { cached: "green", send: "green", probe: "yellow", wait: "yellow", refuse: "red" } as const;

/** Everything that `docstokg why` prints. */
export interface Explanation {
  readonly url: string;
  readonly role: Role;
  readonly policy: PolicyFacts;
  readonly inUse: PolicyInUse;
  readonly shared: SharedFacts;
  readonly cache: CacheFacts;
  readonly verdict: WhyVerdict;
  /** The setting behind the limit that decides; null if none does. */
  readonly decidedBy: DecidedBy | null;
}

export function explanationText(explanation: Explanation, io: Pick<Io, "stdout" | "env">): string {
  const { url, role, policy, inUse, shared, cache, verdict, decidedBy } = explanation;
  const columns = terminalWidth(io.stdout);
  const facts = [
    ["host", `${policy.host}, ${listingText(policy)}`],
    ["breaker", `${breakerText(shared, role)}${partitionsText(policy)}`],
    ...processTexts(shared).map(text => ["process", text] as const),
    ...orderTexts(shared).map(text => ["order", text] as const),
    ["cache", cacheText(cache)],
    ["policy", policySourceText(inUse)],
    ...(decidedBy === null ? [] : [["decided by", decidedByText(decidedBy)] as const]),
  ] as const;
  const sources = policy.values.map(({ field, value, sources: all }) => {
    const { where = "", path = "" } = all.at(-1) ?? {};
    return [field, Array.isArray(value) ? value.join(" + ") : String(value), `${where}${path ? `  ${path}` : ""}`];
  });
  return [
    `${url} (${role})\n`,
    `${painter(io)(COLOURS[verdict.kind], printable(verdict.text))}\n\n`,
    formatPairs(facts, { columns }),
    `\n${formatTable(["setting", "value", "source"], sources, { columns })}`,
  ].join("");
}

/** `fail_max 5 (breakers.yaml:12)`; `shadow` if it only reports. */
function decidedByText({ value, where, mode }: DecidedBy): string {
  const text = Array.isArray(value) ? value.join(" + ") : String(value);
  return `${breakerReasonText(text)} (${where})${mode === "shadow" ? ", shadow mode" : ""}`;
}

function listingText({ host, route, isListed, withheldKeys }: PolicyFacts): string {
  if (isServiceName(route.name)) return `member of ${route.name}${withheldKeys}`;
  const key = `${route.name === host ? "" : `, limits of ${route.name}`}${withheldKeys}`;
  return isListed ? `listed in the policy${key}` : "not listed: the defaults apply";
}

function breakerText(shared: SharedFacts, role: Role): string {
  if (shared.kind === "unknown") return "unknown: the shared store was not read";
  const { state, remainingMs, reason, probes } = roleState(shared.report, role);
  const remaining =
    remainingMs > 0 ? ` for another ${formatWait(remainingMs)} (${breakerReasonText(reason ?? "")})` : "";
  const trials = probes > 0 ? `, ${formatCount(probes, "trial call")} in flight` : "";
  return `${state}${remaining}${trials} (store ${shared.store})`;
}

function partitionsText({ values }: PolicyFacts): string {
  const isDivided = values.some(({ field, value }) => field === "breaker.per" && value === "partition");
  return isDivided ? "; each partition has circuits of its own" : "";
}

function processTexts(shared: SharedFacts): readonly string[] {
  if (shared.kind === "unknown") return [`unknown: ${shared.reason}`];
  const others = [
    ...shared.partitions.map(
      ({ pid, program, count }) =>
        `${pid} ${program}: has called ${formatCount(count, "partition")}, each with limits of its own`,
    ),
    ...(shared.unknown.length === 0 ? [] : [unknownText(shared.unknown)]),
  ];
  if (shared.processes.length === 0)
    return others.length > 0 ? others : ["no process has called this host in the last minute"];
  const known = shared.processes.map(process => {
    const { pid, program, ageMs, waiting, inFlight, windowFailures } = process;
    const failures = windowFailures > 0 ? `, ${formatCount(windowFailures, "failure")} in its rolling window` : "";
    return `${pid} ${program}: ${slotText(process)}, ${inFlight} in flight, ${waiting} queued${failures}; updated ${formatWait(ageMs)} ago`;
  });
  return [...known, ...others];
}

/** The limits that an operator has changed, once: the processes have the same orders. */
function orderTexts(shared: SharedFacts): readonly string[] {
  const processes = shared.kind === "unknown" ? [] : shared.processes;
  const found = processes.find(({ order, totalOrder }) => (order ?? totalOrder) !== undefined);
  if (found === undefined) return [];
  const { order, totalOrder, ageMs } = found;
  return [
    ...(order === undefined ? [] : [orderText(order, ageMs)]),
    ...(totalOrder === undefined ? [] : [`total of ${totalOrder.owner}: ${orderText(totalOrder, ageMs)}`]),
  ];
}

function slotText({ readyMs, constraint, isUsedUp = false }: ProcessFacts): string {
  const limit = constraint === undefined ? "" : ` (${breakerReasonText(describeConstraint(constraint))})`;
  if (isUsedUp) return `waits for units that the processes have used together${limit}`;
  if (readyMs > 0) return `next slot in ${formatWait(readyMs)}${limit}`;
  return constraint?.kind === "concurrency" ? `waits for a concurrency slot${limit}` : "slot free";
}

function cacheText(cache: CacheFacts): string {
  if (cache.kind === "unread") return `not read: ${cache.reason}`;
  if (cache.found.length === 0) return "no stored response for this URL";
  return cache.found
    .map(({ status, verdict, freshMs, varies }) => {
      const age =
        verdict === "fresh"
          ? `fresh for ${formatWait(freshMs)}`
          : freshMs < 0
            ? `stale for ${formatWait(-freshMs)}`
            : "revalidated on every use";
      return `${status}, ${age}${varies.length > 0 ? `, varies by ${varies.join(", ")}` : ""}`;
    })
    .join("; ");
}
