import { breakerReasonText } from "../../breaker/breaker-reason.ts";
import type { SharedBreakerStatus } from "../../breaker/host-status.ts";
import { type Constraint, describeConstraint, HOLD, openCircuitLimit, PROBE_IN_FLIGHT } from "../../errors.ts";
import type { CacheInspection } from "../../http/cache/cache-inspection.ts";
import type { Role } from "../../policy/roles.ts";
import { formatWait } from "../output/duration.ts";
import { type CacheFacts, type PolicyFacts, type ProcessFacts, type SharedFacts, waitsForCalls } from "./why-facts.ts";

/** The result that a request would have now, and the limit that decides. */
export interface WhyVerdict {
  readonly kind: "cached" | "send" | "probe" | "wait" | "refuse";
  /** From now; null if the request is not sent, or if the wait cannot be estimated. */
  readonly sendInMs: number | null;
  readonly constraint: Constraint | null;
  /** The sentences that are printed. */
  readonly text: string;
}

/** Checks in the order of the hub: cache, then breakers, then rate limits. */
export function whyVerdict(role: Role, policy: PolicyFacts, shared: SharedFacts, cache: CacheFacts): WhyVerdict {
  const found = cache.kind === "read" ? cache.found : [];
  const stored = found.find(({ varies }) => varies.length === 0);
  const verdict = sendVerdict(role, policy, shared);
  if (stored === undefined) return withVariants(verdict, found);
  if (stored.verdict === "fresh") return cached(`Served from the cache: fresh for ${formatWait(stored.freshMs)}.`);
  if (stored.verdict === "stale-while-revalidate")
    return cached("Served from the cache: stale, revalidated in the background.");
  if (verdict.kind !== "refuse" || !stored.mayServeOnError) return verdict;
  const text = `Served from the cache, stale, because a request would be refused. ${verdict.text}`;
  return { ...verdict, kind: "cached", text };
}

/** Which stored variant a request gets depends on its header fields, which are unknown here. */
function withVariants(verdict: WhyVerdict, found: readonly CacheInspection[]): WhyVerdict {
  const usable = found.find(({ verdict: kind }) => kind !== "revalidate");
  if (usable === undefined) return verdict;
  const text = `${verdict.text} A request with the same ${usable.varies.join(", ")} is served from the cache.`;
  return { ...verdict, text };
}

/** The state of a role: of its circuit, or of a cooldown that ends later. A cooldown refuses every role. */
export function roleState({ circuits, cooldownMs, cooldownReason }: SharedBreakerStatus, role: Role) {
  const circuit = circuits.find(({ name }) => name === role);
  const circuitMs = circuit?.remainingMs ?? 0;
  const remainingMs = Math.max(cooldownMs, circuitMs);
  return {
    state: remainingMs > 0 ? "open" : (circuit?.state ?? "closed"),
    isCooldown: cooldownMs > 0 && cooldownMs >= circuitMs,
    remainingMs,
    reason: remainingMs === 0 ? undefined : cooldownMs >= circuitMs ? cooldownReason : (circuit?.reason ?? "failures"),
    probes: circuit?.probes ?? 0,
  } as const;
}

/** The verdict of the enforced limits. The text also says what limits in shadow mode would have done. */
function sendVerdict(role: Role, policy: PolicyFacts, shared: SharedFacts): WhyVerdict {
  const enforced = enforcedVerdict(role, policy, shared);
  const { constraint, kind } = enforced;
  if (shared.kind === "unknown" || (kind !== "refuse" && kind !== "wait")) return enforced;
  const isShadow = constraint?.kind === "breaker" ? policy.isBreakerShadow : policy.route.roleBudget.isShadow;
  // A hold applies in shadow mode too.
  if (!isShadow || constraint?.limit.startsWith(HOLD)) return enforced;
  const rest: SharedFacts =
    constraint?.kind === "breaker"
      ? {
          ...shared,
          report: { ...shared.report, cooldownMs: 0, circuits: [] },
          processes: shared.processes.map(asIfAdmitted),
        }
      : { ...shared, processes: [] };
  const verdict = sendVerdict(role, policy, rest);
  return { ...verdict, text: `${verdict.text} Shadow mode only reports: ${enforced.text}` };
}

/** A process may have another policy, in which the circuit is enforced, and wait for it. */
function asIfAdmitted(process: ProcessFacts): ProcessFacts {
  return process.constraint?.kind === "breaker" ? { ...process, readyMs: 0, constraint: undefined } : process;
}

function enforcedVerdict(role: Role, { route, trialCalls }: PolicyFacts, shared: SharedFacts): WhyVerdict {
  if (shared.kind === "unknown") return newProcessVerdict(route);
  const { name: host } = shared.report;
  const next = nextSlotOf(shared);
  const { readyMs, constraint, pid, isUsedUp } = next;
  const { maxDelayMs = route.roleBudget.maxDelayMs } = next;
  const bound = `the call waits at most ${maxDelayMs} ms (max_delay_ms; pass maxWaitMs to wait longer)`;
  const { state, isCooldown, remainingMs, reason, probes } = roleState(shared.report, role);
  const limit = reason === undefined ? PROBE_IN_FLIGHT : openCircuitLimit(reason);
  const breaker: Constraint = { kind: "breaker", owner: host, limit };
  const reasonText = breakerReasonText(reason ?? "");
  if (remainingMs > maxDelayMs) {
    const what = isCooldown
      ? `${host} is in cooldown (${reasonText}) for another ${formatWait(remainingMs)}`
      : `circuit open for ${host} (${reasonText}), next trial in ${formatWait(remainingMs)}`;
    return { kind: "refuse", sendInMs: null, constraint: breaker, text: `Refused: ${what}; ${bound}.` };
  }
  if (constraint !== undefined && waitsForCalls(constraint)) {
    const what = constraint.kind === "concurrency" ? "a concurrency slot" : "the answers of other calls";
    const text = `Waits for ${what} in process ${pid}: ${describeConstraint(constraint)}. The wait cannot be estimated.`;
    return { kind: "wait", sendInMs: null, constraint, text };
  }
  if (isUsedUp && constraint !== undefined) {
    const text = `Waits or is refused: the processes together have used all units of ${describeConstraint(constraint)}. The wait cannot be estimated; ${bound}.`;
    return { kind: "wait", sendInMs: null, constraint, text };
  }
  if (readyMs > maxDelayMs && constraint !== undefined) {
    const by = pid === undefined ? "" : ` by process ${pid}`;
    const text = `Refused${by}: ${limitText(constraint)}, next slot in ${formatWait(readyMs)}; ${bound}.`;
    return { kind: "refuse", sendInMs: readyMs, constraint, text };
  }
  if (state === "half_open" && probes >= trialCalls) {
    const what = `circuit half-open for ${host}, ${probes} of ${trialCalls} trial calls in flight`;
    if (maxDelayMs === 0)
      return { kind: "refuse", sendInMs: null, constraint: breaker, text: `Refused: ${what}; ${bound}.` };
    const text = `Waits for a trial call: ${what}. The wait cannot be estimated; ${bound}.`;
    return { kind: "wait", sendInMs: null, constraint: breaker, text };
  }
  if (remainingMs > 0 && remainingMs >= readyMs) {
    const what = isCooldown ? `${host} is in cooldown` : `circuit open for ${host}`;
    const text = `Waits ${formatWait(remainingMs)}: ${what} (${reasonText}).`;
    return { kind: "wait", sendInMs: remainingMs, constraint: breaker, text };
  }
  if (readyMs > 0 && constraint !== undefined) {
    const where = pid === undefined ? "" : ` in process ${pid}`;
    const text = `Waits ${formatWait(readyMs)}${where}: ${limitText(constraint)}.`;
    return { kind: "wait", sendInMs: readyMs, constraint, text };
  }
  if (state === "half_open") {
    const text = `Sent at once as a trial call: circuit half-open for ${host}.`;
    return { kind: "probe", sendInMs: 0, constraint: null, text };
  }
  const { unknown, partitions } = shared;
  if (unknown.length > 0)
    return sent(
      `Sent at once by a new process. The state of process ${pidsOf(unknown)} is unknown: it has not published this key.`,
    );
  return sent(partitions.length > 0 ? "Sent at once, if the call names no partition." : "Sent at once.");
}

/** When the limits admit the request: in the process that sends it first, or after a hold, which applies to all of them. */
function nextSlotOf({ processes, hold }: SharedFacts & { readonly kind: "connected" }) {
  const { readyMs = 0, constraint, pid, maxDelayMs, isUsedUp = false } = processes[0] ?? {};
  // The process may have published the same hold, with an end that differs by some milliseconds.
  const isKnown = hold?.constraint.owner === constraint?.owner && hold?.constraint.limit === constraint?.limit;
  if (hold === undefined || isKnown || hold.remainingMs <= readyMs)
    return { readyMs, constraint, pid, maxDelayMs, isUsedUp };
  return { readyMs: hold.remainingMs, constraint: hold.constraint, pid: undefined, maxDelayMs, isUsedUp: false };
}

function pidsOf(processes: readonly { readonly pid: number }[]): string {
  return processes.map(({ pid }) => pid).join(", ");
}

/** Without a shared store only the policy is known. */
function newProcessVerdict(route: PolicyFacts["route"]): WhyVerdict {
  const { ms, limit } = steadySpacing(route);
  const steady = `one request every ${formatWait(ms)} when its windows are full (${limit})`;
  const pace = ms === 0 ? "" : route.roleBudget.isShadow ? `. Shadow mode only reports: ${steady}` : `, then ${steady}`;
  return sent(`A new process sends this request at once${pace}. The state of running processes is unknown.`);
}

function limitText(constraint: Constraint): string {
  const text = breakerReasonText(describeConstraint(constraint));
  return constraint.kind === "window" ? `rate limit ${text} reached` : text;
}

function cached(text: string): WhyVerdict {
  return { kind: "cached", sendInMs: null, constraint: null, text };
}

function sent(text: string): WhyVerdict {
  return { kind: "send", sendInMs: 0, constraint: null, text };
}

/** The time between two requests while the slowest window of the route is always full, and that window. */
function steadySpacing({ roleBudget, above }: PolicyFacts["route"]): { readonly ms: number; readonly limit: string } {
  const spacings = [roleBudget, ...above.map(({ policy }) => policy)].flatMap(({ windows, labels, spacingUs }) => [
    { ms: spacingUs / 1000, limit: `even spacing of ${labels.join("+")}` },
    ...windows.map(({ spanUs, limit }, index) => ({ ms: spanUs / limit / 1000, limit: labels[index] ?? "" })),
  ]);
  return spacings.reduce((slowest, one) => (one.ms > slowest.ms ? one : slowest), { ms: 0, limit: "" });
}
