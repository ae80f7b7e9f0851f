import { SpanKind } from "@opentelemetry/api";
import type { ReadableSpan } from "@opentelemetry/sdk-trace-base";
import type { HubSnapshot } from "../../../src/http/hub.ts";
import type { EventOf, EventType, TelemetryEvent } from "../../../src/telemetry/events.ts";
import type { CallerLedger } from "./ledger-calls.ts";
import type { SeenRequest } from "./ledger-server.ts";

/** Everything that recorded the calls of one batch. */
export interface Ledger {
  readonly caller: CallerLedger;
  readonly seen: readonly SeenRequest[];
  readonly events: readonly TelemetryEvent[];
  /** The text of Prometheus. */
  readonly metrics: string;
  readonly spans: readonly ReadableSpan[];
  /** The SQLite file. */
  readonly file: string;
  readonly snapshot: HubSnapshot;
}

/** The sum over all series of a metric that have these labels. */
export function metric(text: string, name: string, labels: Readonly<Record<string, string>>): number {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  let total = 0;
  for (const line of text.split("\n")) {
    if (!line.startsWith(`docstokg_${name}{`) && !line.startsWith(`docstokg_${name} `)) continue;
    if (wanted.every(label => line.includes(label))) total += Number(line.slice(line.lastIndexOf(" ")));
  }
  return total;
}

export function eventsOfType<Type extends EventType>(
  events: readonly TelemetryEvent[],
  type: Type,
): readonly EventOf<Type>[] {
  return events.filter((event): event is EventOf<Type> => event.event_type === type);
}

export function calls(events: readonly TelemetryEvent[]): readonly EventOf<"http_request">[] {
  return eventsOfType(events, "http_request").filter(({ background }) => !background);
}

export function callSpans(spans: readonly ReadableSpan[], withRefreshes = false): readonly ReadableSpan[] {
  return spans.filter(
    ({ kind, attributes }) =>
      kind === SpanKind.INTERNAL && (withRefreshes || attributes["docstokg.background"] !== true),
  );
}

export function clientSpans(spans: readonly ReadableSpan[]): readonly ReadableSpan[] {
  return spans.filter(({ kind }) => kind === SpanKind.CLIENT);
}
