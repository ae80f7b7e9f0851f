import { type EventSpecs, key, role } from "./event-spec.ts";

const adjusted = {
  host: key,
  role,
  old: ["number or text", "value before the change"],
  new: ["number or text", "value after the change"],
  reason: ["text", "reason of the change"],
} as const;

/** The events of the rate limiter and of the shared store. */
export const RATE_SPECS = {
  "ratelimit.acquire": {
    about: "Result of one request for a rate-limit grant. One event per attempt.",
    fields: {
      key,
      role,
      rates: ["text", "rates in force, such as `10/SECOND+5000/HOUR`"],
      weight: ["number", "units used; 0 for a HEAD that the rate limit does not count"],
      costs: ["text?", "what it uses of other units, such as `credits 10`; absent if the limits count none"],
      mode: ["text", "`fail` for a call that never waits (maxWaitMs 0), and for a refusal on arrival; else `block`"],
      blocked_ms: ["number", "time in the queue, in ms"],
      decided_by: [
        "text?",
        "for a granted request: the setting that most of blocked_ms was spent on, and where it was set",
      ],
      outcome: ["text", "`granted`, `refused` or `aborted`"],
    },
  },
  "ratelimit.settle": {
    about: "The true cost of a request is known, and differs from what it was charged: a refund or a debt.",
    fields: {
      key,
      role,
      unit: ["text", "the unit, such as `credits`"],
      charged: ["number", "what the request was charged"],
      used: ["number", "what it really used"],
    },
  },
  "ratelimit.cooldown": {
    about: "The key is in cooldown: no request of it is sent until the end.",
    fields: { key, role, seconds: ["number", "length of the cooldown, in s"] },
  },
  "ratelimit.shadow": {
    about: "Shadow mode: the request was sent at once; in enforce mode it would have waited or been refused.",
    fields: {
      key,
      role,
      would: ["text", "`wait` or `refuse`"],
      wait_ms: ["number?", "estimated wait, in ms; absent when unknown"],
      constraint: ["text", "the limit that decided, such as `10/SECOND of api.example.org`"],
      decided_by: ["text?", "the setting that decided and where it was set, as in `10/SECOND (ratelimits.yaml:34)`"],
    },
  },
  rate_head_skipped: {
    about: "A HEAD request was sent that the rate limit does not count.",
    fields: { host: key, role },
  },
  aimd_adjust: { about: "AIMD changed the rate multiplier of a key.", fields: adjusted },
  guard_adjust: { about: "The guard of a key changed, in ms.", fields: adjusted },
  shape_adjust: { about: "The shape of a key changed to `smooth` (even spacing) or `burst`.", fields: adjusted },
  limit_learned: {
    about: "The server announced a stricter limit than the policy, or that limit expired.",
    fields: {
      key,
      role,
      what: ["text", "`rate` or `concurrency`"],
      old: ["text", "limit before the change"],
      new: ["text", "limit after the change"],
      source: ["text", "kind of header fields that announced the limit; `lapsed` when it expired"],
    },
  },
  limit_ordered: {
    about: "An operator changed the limits of a key or total (`docstokg limits set`), or such an order has ended.",
    fields: {
      key,
      role: ["text", "role of the key, or `total`"],
      old: ["text", "rates before, joined by `+`; `none` if there were none; with `, max_concurrent 3` if it changes"],
      new: ["text", "rates now, in the same form"],
      seconds: ["number", "how long the order lasts; 0 if it has ended"],
      reason: ["text", "what the operator wrote, or why the order has ended"],
      by: ["text", "the operator or program that gave the order; empty if its time is over"],
      is_looser: ["flag", "true if the order allows more than the policy"],
    },
  },
  limit_overruled: {
    about: "Another process has a stricter policy for this key; the stricter one applies to all processes.",
    fields: { host: key, role },
  },
  store_away: {
    about: "The shared store does not answer; `when_store_away` says what calls do. Once for each outage.",
    fields: {
      processes: ["number", "number of processes that the limits are divided by; 1 when it is not known"],
      mode: ["text", "what calls do until it is back: `share`, `wait` or `refuse`"],
      message: ["text", "reason"],
    },
  },
  store_back: {
    about: "The shared store answers again. Once for each outage.",
    fields: { away_ms: ["number", "milliseconds since `store_away`"] },
  },
} satisfies Partial<EventSpecs>;
