/**
 * Describes every event and its fields. Events read from files are checked against it (event-check.ts), and the tables
 * of the reference are generated from it.
 */
import type { EventType } from "./events.ts";
import { BREAKER_SPECS } from "./fields/breaker-fields.ts";
import type { EventSpecs } from "./fields/event-spec.ts";
import { HTTP_SPECS } from "./fields/http-fields.ts";
import { RATE_SPECS } from "./fields/rate-fields.ts";

export const EVENT_SPECS: EventSpecs = {
  ...HTTP_SPECS,
  ...RATE_SPECS,
  ...BREAKER_SPECS,
  run_started: {
    about: "The first event of a run.",
    fields: { program: ["text", "name of the program"], version: ["text", "version of docstokg"] },
  },
  run_ended: { about: "The run has ended normally. Only a `telemetry_dropped` event may follow.", fields: {} },
  telemetry_dropped: {
    about: "Events before this one were dropped: the sink was slower than the events, or a write failed.",
    fields: {
      sink: ["text", "name of the sink"],
      dropped: ["number", "number dropped since the last telemetry_dropped event"],
    },
  },
};

export function isEventType(type: string): type is EventType {
  return Object.hasOwn(EVENT_SPECS, type);
}
