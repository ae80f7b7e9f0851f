import { type Channel, channel } from "node:diagnostics_channel";
import { EVENT_SPECS } from "../event-fields.ts";
import type { EventType } from "../events.ts";
import type { Sink } from "../sink.ts";

/**
 * Publishes each event on the `node:diagnostics_channel` of its type, such as `docstokg:http_request`. Without subscribers
 * no event is built.
 */
export function channelSink(): Sink {
  const channels = new Map<EventType, Channel>();
  for (const type of Object.keys(EVENT_SPECS) as EventType[]) channels.set(type, channel(`docstokg:${type}`));
  const all = [...channels.values()];
  return {
    name: "channel",
    get isListening() {
      return all.some(({ hasSubscribers }) => hasSubscribers);
    },
    take: event => {
      const to = channels.get(event.event_type);
      if (to?.hasSubscribers) to.publish(event);
    },
  };
}
