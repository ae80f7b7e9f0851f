/** Checks of single calls and spans, which the totals of a ledger cannot show. */
import { callOutcomeOf } from "../../../src/telemetry/call-outcome.ts";
import { count } from "./ledger-calls.ts";
import { callSpans, clientSpans, eventsOfType, type Ledger } from "./ledger-records.ts";

/** Each call: the number of its attempts and their numbers, and an end. */
export function callProblems({ events }: Ledger): readonly string[] {
  const problems: string[] = [];
  const sent = new Map<string, number>();
  const numbers = new Map<string, number[]>();
  const lastHosts = new Map<string, string>();
  for (const { call_id, connection, attempt, host } of eventsOfType(events, "http_attempt")) {
    lastHosts.set(call_id, host);
    if (connection !== "none") count(sent, call_id);
    numbers.set(call_id, [...(numbers.get(call_id) ?? []), attempt]);
  }
  const ids = new Set<string>();
  for (const event of eventsOfType(events, "http_request")) {
    if (ids.has(event.call_id)) problems.push(`call ${event.call_id} has two http_request events`);
    ids.add(event.call_id);
    if (event.attempts !== (sent.get(event.call_id) ?? 0))
      problems.push(`call ${event.call_id} has ${event.attempts} attempts, its events ${sent.get(event.call_id) ?? 0}`);
    const endedByServer = event.status !== undefined && !event.from_cache && !event.coalesced && event.attempts > 0;
    if (endedByServer && event.final_host !== lastHosts.get(event.call_id))
      problems.push(
        `call ${event.call_id} ended at ${event.final_host}, its last attempt at ${lastHosts.get(event.call_id)}`,
      );
    const isUnsent = event.attempts === 0 && !event.coalesced;
    if (isUnsent && ["answered", "throttled"].includes(callOutcomeOf(event)))
      problems.push(`call ${event.call_id} was ${callOutcomeOf(event)} without an attempt`);
  }
  for (const [id, own] of numbers) {
    if (!ids.has(id)) problems.push(`attempts of call ${id}, which has no http_request`);
    const expected = own.map((_, index) => index + 1);
    if (own.toSorted((a, b) => a - b).join() !== expected.join()) problems.push(`call ${id} has attempts ${own}`);
  }
  return problems;
}

/** Each attempt is below the span of its call, and the request with its traceparent had the same status. */
export function spanProblems({ spans, seen }: Ledger): readonly string[] {
  const callIds = new Set(callSpans(spans, true).map(span => span.spanContext().spanId));
  const requests = new Map(seen.map(request => [request.traceparent, request]));
  const problems: string[] = [];
  for (const span of clientSpans(spans)) {
    const { attributes, parentSpanContext } = span;
    const { traceId, spanId } = span.spanContext();
    const request = requests.get(`00-${traceId}-${spanId}-01`);
    const status = attributes["http.response.status_code"];
    if (!callIds.has(parentSpanContext?.spanId ?? "")) problems.push(`span ${spanId} has no call above it`);
    if ((request === undefined) !== (attributes["docstokg.connection"] === "none"))
      problems.push(`the requests with the traceparent of span ${spanId} are not as many as it has sent`);
    if (request?.status !== status)
      problems.push(`${request?.method} ${request?.path}: answered ${request?.status}, its span has ${status}`);
  }
  return problems;
}
