import type { SimFact } from "./facts.ts";
import type { CallPlan } from "./plan.ts";

/** One fact as a line: time, process, text. Undefined for facts that only the laws use. */
export function traceLine(fact: SimFact): string | undefined {
  const text = textOf(fact);
  if (text === undefined) return undefined;
  const process = "process" in fact ? fact.process : "request" in fact ? fact.request.process : undefined;
  const where = process === undefined ? "world" : `p${process}`;
  return `${(fact.atUs / 1000).toFixed(3).padStart(12)} ms  ${where.padEnd(5)}  ${text}`;
}

function textOf(fact: SimFact): string | undefined {
  switch (fact.kind) {
    case "call":
      return `call ${fact.call.id}: ${callText(fact.call)}`;
    case "done":
      return `call ${fact.call.id}: ${fact.error ?? fact.status}`;
    case "dispatched":
      return `request ${fact.request.id}: attempt ${fact.request.attempt} of call ${fact.request.call.id} dispatched`;
    case "written":
      return `request ${fact.request.id}: written${fact.request.isCold ? " over a new connection" : ""}`;
    case "arrived":
      return `request ${fact.request.id}: arrives at ${fact.request.host}`;
    case "rejected":
      return `request ${fact.request.id}: rejected (${fact.by})`;
    case "head":
      return `request ${fact.request.id}: answered ${fact.status}${fact.retryAfterMs === undefined ? "" : `, Retry-After ${fact.retryAfterMs} ms`}`;
    case "ended":
      return `request ${fact.request.id}: ${fact.how}`;
    case "event":
      // The numbers of calls go on over all worlds of a process.
      return JSON.stringify({ ...fact.event, call_id: undefined });
    case "fault":
      return `fault ${fact.isOver ? "ends" : "begins"}: ${JSON.stringify(fact.fault)}`;
    case "reloaded":
      return fact.isDone ? `reloaded, rates x ${fact.factor}` : undefined;
    case "snapshot":
      return fact.isLast
        ? `ends with ${fact.calls} calls, ${fact.inFlight} in flight, ${fact.waiting} waiting`
        : undefined;
    case "stuck":
      return fact.message;
    case "store-snapshot":
      return `the store ends with ${fact.pending} units leased`;
  }
}

function callText({ method, host, role, page, weight, maxWaitMs, deadlineMs, abortMs, isRead }: CallPlan): string {
  const extras = [
    weight === 1 ? "" : `weight ${weight}`,
    maxWaitMs === undefined ? "" : `waits at most ${maxWaitMs} ms`,
    deadlineMs === undefined ? "" : `deadline ${deadlineMs} ms`,
    abortMs === undefined ? "" : `aborts after ${abortMs} ms`,
    isRead ? "" : "leaves the body unread",
  ].filter(text => text !== "");
  return [`${method} ${host}/${role}/${page}`, ...extras].join(", ");
}
