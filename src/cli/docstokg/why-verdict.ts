import { type Constraint, describeConstraint } from "../../errors.ts";
import type { CacheInspection } from "../../http/cache/cache-inspection.ts";
import type { SharedBreakerStatus } from "../../http/operator.ts";
import type { Role } from "../../policy/roles.ts";
import { formatWait } from "../output/duration.ts";
import type { CacheFacts, PolicyFacts, SharedFacts } from "./why-facts.ts";

/** What would become of a request now, and what decides it. */
export interface WhyVerdict {
  readonly kind: "cached" | "send" | "probe" | "wait" | "refuse";
  /** From now; null for never, or nobody knows when. */
  readonly sendInMs: number | null;
  readonly constraint: Constraint | null;
  /** One sentence, for people. */
  readonly text: string;
}

/** As the hub would go about it: cache, then breakers, then limits. */
export function whyVerdict(role: Role, policy: PolicyFacts, shared: SharedFacts, cache: CacheFacts): WhyVerdict {
  const found = cache.kind === "looked" ? cache.found : [];
  const stored = found.find(({ varies }) => varies.length === 0);
  const verdict = sendVerdict(role, policy, shared);
  if (stored === undefined) return withVariants(verdict, found);
  if (stored.verdict === "fresh")
    return cached(`It is answered from the cache, fresh for ${formatWait(stored.freshMs)}.`);
  if (stored.verdict === "stale-while-revalidate")
    return cached("It is answered from the cache, which is stale and asks for a new answer in the background.");
  if (verdict.kind !== "refuse" || !stored.mayServeOnError) return verdict;
  return { ...verdict, kind: "cached", text: `It is answered from the cache, stale. ${verdict.text}` };
}

/** Which fields a request will have is not known here. */
function withVariants(verdict: WhyVerdict, found: readonly CacheInspection[]): WhyVerdict {
  const usable = found.find(({ verdict: kind }) => kind !== "revalidate");
  if (usable === undefined) return verdict;
  const text = `${verdict.text} Or it is answered from the cache, if it has the same ${usable.varies.join(", ")}.`;
  return { ...verdict, text };
}

/** The role's own circuit, and the cooldown that shuts all of them. */
export function roleState({ circuits, cooldownMs, reason }: SharedBreakerStatus, role: Role) {
  const circuit = circuits.find(({ name }) => name === role);
  const circuitMs = circuit?.remainingMs ?? 0;
  const remainingMs = Math.max(cooldownMs, circuitMs);
  return {
    state: remainingMs > 0 ? "open" : (circuit?.state ?? "closed"),
    remainingMs,
    reason: remainingMs === 0 ? undefined : cooldownMs >= circuitMs ? reason : "failures",
    probes: circuit?.probes ?? 0,
  } as const;
}

function sendVerdict(role: Role, { host, route, trialCalls }: PolicyFacts, shared: SharedFacts): WhyVerdict {
  const { maxDelayMs } = route.roleBudget;
  const bound = `max_delay_ms is ${maxDelayMs}, unless the call says otherwise`;
  if (shared.kind === "unknown") {
    const spacing =
      steadySpacingMs(route) > 0 ? `, then one each ${formatWait(steadySpacingMs(route))} in the long run` : "";
    return sent(`A new process would send it at once${spacing}. Of running ones nothing is known.`);
  }
  const { state, remainingMs, reason, probes } = roleState(shared.report, role);
  const breaker: Constraint = { kind: "breaker", owner: host, limit: reason ?? "half-open" };
  if (remainingMs > maxDelayMs) {
    const text = `It is refused: ${host} is cut off for another ${formatWait(remainingMs)} (${reason}); ${bound}.`;
    return { kind: "refuse", sendInMs: null, constraint: breaker, text };
  }
  if (state === "half_open" && probes >= trialCalls) {
    const text = `It is refused: ${host} is half-open, and ${probes} of ${trialCalls} trial calls are under way.`;
    return { kind: "refuse", sendInMs: null, constraint: breaker, text };
  }
  const { readyMs = 0, constraint, pid } = shared.processes[0] ?? {};
  if (constraint?.kind === "concurrency") {
    const text = `It waits for a slot in process ${pid}: ${describeConstraint(constraint)}. When one is freed nobody knows.`;
    return { kind: "wait", sendInMs: null, constraint, text };
  }
  if (readyMs > maxDelayMs && constraint !== undefined) {
    const text = `It is refused by process ${pid}: full for another ${formatWait(readyMs)}, ${describeConstraint(constraint)}; ${bound}.`;
    return { kind: "refuse", sendInMs: readyMs, constraint, text };
  }
  if (remainingMs > 0 && remainingMs >= readyMs) {
    const text = `It waits ${formatWait(remainingMs)}: ${host} is cut off until then (${reason}).`;
    return { kind: "wait", sendInMs: remainingMs, constraint: breaker, text };
  }
  if (readyMs > 0 && constraint !== undefined) {
    const text = `It waits ${formatWait(readyMs)} in process ${pid}: ${describeConstraint(constraint)}.`;
    return { kind: "wait", sendInMs: readyMs, constraint, text };
  }
  if (state === "half_open")
    return {
      kind: "probe",
      sendInMs: 0,
      constraint: null,
      text: `It is sent at once, as a trial call: ${host} is half-open.`,
    };
  return sent("It is sent at once.");
}

function cached(text: string): WhyVerdict {
  return { kind: "cached", sendInMs: null, constraint: null, text };
}

function sent(text: string): WhyVerdict {
  return { kind: "send", sendInMs: 0, constraint: null, text };
}

/** How far apart requests are when the slowest window on the way is always full. */
export function steadySpacingMs({ roleBudget, above }: PolicyFacts["route"]): number {
  const budgets = [roleBudget, ...above.map(({ policy }) => policy)];
  const spacings = budgets.flatMap(({ windows, spacingUs }) => [
    spacingUs,
    ...windows.map(({ spanUs, limit }) => spanUs / limit),
  ]);
  return Math.max(0, ...spacings) / 1000;
}
