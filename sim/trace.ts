import type { SimFact } from "./facts.ts";
import type { CallPlan } from "./plan.ts";

/** One step as a line: when, where, what. Undefined for what only the laws look at. */
export function traceLine(fact: SimFact): string | undefined {
  const text = textOf(fact);
  if (text === undefined) return undefined;
  const process = "process" in fact ? fact.process : "sending" in fact ? fact.sending.process : undefined;
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
      return `request ${fact.sending.id}: attempt ${fact.sending.attempt} of call ${fact.sending.call.id} may go`;
    case "written":
      return `request ${fact.sending.id}: written${fact.sending.isCold ? " over a new connection" : ""}`;
    case "arrived":
      return `request ${fact.sending.id}: arrives at ${fact.sending.host}`;
    case "rejected":
      return `request ${fact.sending.id}: rejected (${fact.by})`;
    case "head":
      return `request ${fact.sending.id}: answered ${fact.status}${fact.retryAfterMs === undefined ? "" : `, asks for ${fact.retryAfterMs} ms`}`;
    case "ended":
      return `request ${fact.sending.id}: ${fact.how}`;
    case "event":
      return JSON.stringify(fact.event);
    case "fault":
      return `${fact.isOver ? "over" : "begins"}: ${JSON.stringify(fact.fault)}`;
    case "reloaded":
      return fact.isDone ? `goes on with its rates times ${fact.factor}` : undefined;
    case "look":
      return fact.isLast
        ? `ends with ${fact.calls} calls, ${fact.inFlight} in flight, ${fact.waiting} waiting`
        : undefined;
    case "stuck":
      return fact.message;
    case "store-look":
      return `the store ends with ${fact.pending} units out`;
  }
}

function callText({ method, host, role, page, weight, maxWaitMs, deadlineMs, abortMs, isRead }: CallPlan): string {
  const extras = [
    weight === 1 ? "" : `weight ${weight}`,
    maxWaitMs === undefined ? "" : `may wait ${maxWaitMs} ms`,
    deadlineMs === undefined ? "" : `deadline ${deadlineMs} ms`,
    abortMs === undefined ? "" : `leaves after ${abortMs} ms`,
    isRead ? "" : "does not read",
  ].filter(text => text !== "");
  return [`${method} ${host}/${role}/${page}`, ...extras].join(", ");
}
