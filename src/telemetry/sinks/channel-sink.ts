import { type Channel, channel } from "node:diagnostics_channel";
import { EVENT_SPECS } from "../event-fields.ts";
import type { EventType } from "../events.ts";
import type { Sink } from "../sink.ts";

/** Each event on `node:diagnostics_channel`, on a channel of its type: `docstokg:http_request`. Free when nobody listens. */
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
