/**
 * Every event and its fields in words. The compiler sees that nothing is missing and that kinds are right; files are
 * checked against it when they are read, and the guide is made from it.
 */
import type { EventBodyOf, EventType } from "./events.ts";

type KeysOf<Union> = Union extends unknown ? Exclude<keyof Union, "event_type"> : never;
type ValueAt<Union, Key extends PropertyKey> = Union extends unknown
  ? Key extends keyof Union
    ? Union[Key]
    : undefined
  : never;
type Plain<Value> = [Value] extends [number]
  ? "number"
  : [Value] extends [boolean]
    ? "flag"
    : [Value] extends [string]
      ? "text"
      : "number or text";
type KindOf<Value> = undefined extends Value ? `${Plain<Exclude<Value, undefined>>}?` : Plain<Value>;

/** `?` marks a field that may be absent. */
export type FieldKind = `${"number" | "flag" | "text" | "number or text"}${"" | "?"}`;
export type FieldSpec = readonly [kind: FieldKind, about: string];

type SpecOf<Type extends EventType> = {
  readonly about: string;
  readonly fields: {
    readonly [Key in KeysOf<EventBodyOf<Type>>]: readonly [
      kind: KindOf<ValueAt<EventBodyOf<Type>, Key>>,
      about: string,
    ];
  };
};

const host = ["text", "canonical host, or the group whose budget it is"] as const;
const role = ["text", "`metadata`, `landing` or `artifact`"] as const;
const adjusted = {
  host,
  role,
  old: ["number or text", "before"],
  new: ["number or text", "from now on"],
  reason: ["text", "what it was changed for"],
} as const;
const result = {
  host,
  role,
  status: ["number?", "absent when there was no answer"],
  retry_after_s: ["number?", "what the server asked for"],
} as const;

export const EVENT_SPECS: { readonly [Type in EventType]: SpecOf<Type> } = {
  http_request: {
    about: "A call is over, however often it was sent.",
    fields: {
      host,
      role,
      resolver: ["text?", "whose idea the call was"],
      method: ["text", "of the call"],
      status: ["number?", "of the answer; absent when there was none"],
      error: ["text?", "the code of the error it ended with"],
      from_cache: ["flag", "answered by the cache, a revalidated answer included"],
      revalidated: ["flag", "the server said that the stored answer still holds"],
      stale: ["flag", "a stored answer that was no longer fresh"],
      coalesced: ["flag", "somebody else's request brought the answer"],
      attempts: ["number", "how often it was put on the wire"],
      retry_after_s: ["number?", "what the last answer asked for"],
      rate_delay_ms: ["number", "waited at the gate, over all attempts"],
      rate_concurrency_wait_ms: ["number", "how much of that was for a slot or a turn, and not for a rate"],
      breaker_host_state: ["text", "`closed`, `open` or `half_open`, when it was over"],
      breaker_resolver_state: ["text?", "the same of the resolver, where there is one"],
      breaker_open_remaining_ms: ["number", "for how long the host is cut off; 0 when it is not"],
      breaker_recorded: ["text?", "`success`, `failure` or `neutral`; absent when nothing was sent"],
      elapsed_ms: ["number", "from the call to the end of the body, waits included"],
      url_hash: ["text", "tells two URLs apart without giving them away"],
    },
  },
  http_retry: {
    about: "An attempt has failed, and another one will be made.",
    fields: {
      host,
      role,
      attempt: ["number", "the one that failed, counted from 1"],
      delay_ms: ["number", "the pause before the next"],
      status: ["number?", "of the answer; absent when there was none"],
      error: ["text?", "its code"],
    },
  },
  body_unread: {
    about: "Nobody read the body of an answer, which held a slot; it was given up.",
    fields: { host, role, unread_ms: ["number", "for how long nobody did"] },
  },
  cache_trouble: { about: "The cache cannot keep what it should.", fields: { message: ["text", "why"] } },
  policy_loaded: {
    about: "The first event of a hub, and again after each reload.",
    fields: { config_hash: ["text", "tells policies apart"] },
  },
  "ratelimit.acquire": {
    about: "A request came to the gate, and this became of it. One for each attempt.",
    fields: {
      key: ["text", "the host or group whose budget it is"],
      role,
      rates: ["text", "in force, `10/SECOND+5000/HOUR`"],
      weight: ["number", "units it took; 0 for a HEAD that the windows do not count"],
      mode: ["text", "`block` when it would have waited, `fail` when not"],
      blocked_ms: ["number", "how long it stood in line"],
      outcome: ["text", "`granted`, `refused` or `aborted`"],
    },
  },
  "ratelimit.cooldown": {
    about: "Nothing of this budget goes for a while.",
    fields: { key: ["text", "the host or group"], role, seconds: ["number", "from now"] },
  },
  "ratelimit.shadow": {
    about: "A lane in shadow mode: this would have been done to a request that went at once.",
    fields: {
      key: ["text", "the host or group"],
      role,
      would: ["text", "`wait` or `refuse`"],
      wait_ms: ["number?", "how long; absent when nobody can know"],
      constraint: ["text", "what is in the way, `10/SECOND of api.example.org`"],
    },
  },
  rate_head_skipped: { about: "A HEAD went that cost no unit.", fields: { host, role } },
  aimd_adjust: { about: "The pace of a budget was changed: the multiplier of its rates.", fields: adjusted },
  guard_adjust: { about: "The guard of a budget's windows was changed, in milliseconds.", fields: adjusted },
  shape_adjust: { about: "A budget is spent evenly from now on, or in bursts again.", fields: adjusted },
  limit_learned: {
    about: "A server has announced a tighter limit than the policy's, or it has lapsed.",
    fields: {
      host,
      role,
      what: ["text", "`rate` or `concurrency`"],
      old: ["text", "before"],
      new: ["text", "from now on"],
      source: ["text", "the family of fields that announced it, or `lapsed`"],
    },
  },
  limit_overruled: { about: "Another process has a stricter policy, and it counts for all.", fields: { host, role } },
  store_away: {
    about: "The store that processes share is away: each keeps to its share of the limits.",
    fields: { processes: ["number", "as last seen"], message: ["text", "why"] },
  },
  store_back: { about: "It is back.", fields: {} },
  breaker_before_call: {
    about: "A breaker was asked. All that were denied are told, of those that were allowed a sample.",
    fields: {
      host,
      role,
      resolver: ["text?", "whose idea the call was"],
      allowed: ["flag", "whether it may be made"],
      state: ["text", "`closed`, `open` or `half_open`"],
      reason: ["text?", "why not: `failures`, `retry-after`, `rolling-window`, `cli-open:…`"],
      remaining_ms: ["number", "for how much longer"],
      sample_rate: ["number?", "which share of its kind was kept; absent for all of them"],
    },
  },
  breaker_success: { about: "A call went well.", fields: result },
  breaker_failure: { about: "A call has failed.", fields: result },
  breaker_state_change: {
    about: "A circuit has opened, is to be tried, or has closed. Never sampled.",
    fields: {
      host: ["text?", "absent for the circuit of a resolver"],
      role: ["text?", "absent for the circuit of a resolver"],
      resolver: ["text?", "whose circuit it is"],
      old: ["text", "`closed`, `open` or `half_open`"],
      new: ["text", "the same"],
      reset_timeout_s: ["number", "for an opening, how long it lasts"],
      last_rate_delay_ms: ["number?", "how long the last call to the host had waited at the gate"],
      heard: ["flag?", "another process has told it"],
    },
  },
  breaker_cooldown_set: {
    about: "A host is cut off, all its roles.",
    fields: {
      host,
      until: ["number", "epoch milliseconds"],
      reason: ["text", "`retry-after`, `rolling-window` or `cli-open:…`"],
    },
  },
  breaker_cooldown_ended: {
    about: "A host may be called again before its time.",
    fields: { host, by: ["text", "`success` or `operator`"] },
  },
  breaker_shadow: {
    about: "A host in shadow mode was called although it would have been left alone.",
    fields: {
      host,
      role,
      reason: ["text", "why: `failures`, `retry-after`, `rolling-window`, `cli-open:…`"],
      remaining_ms: ["number", "for how long it would have been"],
    },
  },
  breaker_reset_raised: {
    about: "A host keeps asking for longer pauses than its reset, and gets them.",
    fields: { host, old_s: ["number", "before"], new_s: ["number", "from now on"] },
  },
  run_started: {
    about: "The first event of a run.",
    fields: { program: ["text", "which one"], version: ["text", "of the package"] },
  },
  run_ended: { about: "The last event of a run that came to its end.", fields: {} },
  telemetry_dropped: {
    about: "A sink was slower than the events came, and some are missing before this one.",
    fields: { sink: ["text", "which one"], dropped: ["number", "how many since it was last told"] },
  },
};

interface FieldCheck {
  readonly name: string;
  readonly kind: string;
  readonly types: readonly string[];
  readonly isOptional: boolean;
}

const TYPES: Readonly<Record<string, readonly string[]>> = {
  number: ["number"],
  flag: ["boolean"],
  text: ["string"],
  "number or text": ["number", "string"],
};

/** Made once: every line of a file is checked. */
const CHECKS = new Map<string, readonly FieldCheck[]>(
  Object.entries(EVENT_SPECS).map(([type, { fields }]) => [type, Object.entries<FieldSpec>(fields).map(checkOf)]),
);

function checkOf([name, [kind]]: readonly [string, FieldSpec]): FieldCheck {
  const plain = kind.replace("?", "");
  return { name, kind: plain, types: TYPES[plain] ?? [], isOptional: kind.endsWith("?") };
}

/** What is wrong with an event as it was read; undefined when it is one of ours. */
export function fieldProblem(type: EventType, event: Readonly<Record<string, unknown>>): string | undefined {
  for (const { name, kind, types, isOptional } of CHECKS.get(type) ?? []) {
    const value = event[name];
    if (value === undefined && isOptional) continue;
    if (!types.includes(typeof value) || (typeof value === "number" && !Number.isFinite(value)))
      return `${name} is no ${kind}`;
  }
  return undefined;
}

export function isEventType(type: string): type is EventType {
  return Object.hasOwn(EVENT_SPECS, type);
}
