import { type Channel, channel } from "node:diagnostics_channel";
import { EVENT_SPECS } from "../event-fields.ts";
import type { EventType, TelemetryEvent } from "../events.ts";
import type { Sink } from "../sink.ts";

type ChannelSubscriber = (event: TelemetryEvent, name: string | symbol) => unknown;

/**
 * Publishes each event on the `node:diagnostics_channel` of its type, such as `docstokg:http_request`. If the
 * channel has no subscriber, the event is not built. A subscriber that throws does not affect requests or other subscribers.
 */
export function channelSink(): Sink {
  const channels = new Map<EventType, Channel>();
  for (const type of Object.keys(EVENT_SPECS) as EventType[]) channels.set(type, channel(`docstokg:${type}`));
  return {
    name: "channel",
    listensTo: type => channels.get(type)?.hasSubscribers === true,
    take: event => {
      const target = channels.get(event.event_type);
      return target?.hasSubscribers ? publish(target, event) : undefined;
    },
  };
}

/**
 * Calls the subscribers itself, because `Channel.publish` turns the error of a subscriber into an uncaught exception, which
 * ends the process. Node has only a private list of subscribers. In a version without it, `Channel.publish` is called.
 */
function publish(target: Channel, event: TelemetryEvent): Promise<unknown> | undefined {
  const subscribers = (target as { readonly _subscribers?: unknown })._subscribers;
  if (!Array.isArray(subscribers)) {
    target.publish(event);
    return undefined;
  }
  const pending: Promise<unknown>[] = [];
  let failure: { readonly error: unknown } | undefined;
  for (const subscriber of [...subscribers] as ChannelSubscriber[]) {
    try {
      const returned = subscriber(event, target.name);
      if (returned instanceof Promise) pending.push(returned);
    } catch (error) {
      failure ??= { error };
    }
  }
  if (failure !== undefined) pending.push(Promise.reject(failure.error));
  return pending.length === 0 ? undefined : Promise.all(pending);
}
