import { EVENT_SPECS } from "./event-fields.ts";
import type { EventType } from "./events.ts";
import type { FieldSpec } from "./fields/event-spec.ts";

interface FieldCheck {
  readonly name: string;
  readonly types: readonly string[];
  readonly isOptional: boolean;
}

const TYPES: Readonly<Record<string, readonly string[]>> = {
  number: ["number"],
  flag: ["boolean"],
  text: ["string"],
  "number or text": ["number", "string"],
};

/** Built once, because every event of a file is checked. */
const CHECKS = new Map<string, readonly FieldCheck[]>(
  Object.entries(EVENT_SPECS).map(([type, { fields }]) => [type, Object.entries<FieldSpec>(fields).map(checkOf)]),
);

function checkOf([name, [kind]]: readonly [string, FieldSpec]): FieldCheck {
  const plain = kind.replace("?", "");
  return { name, types: TYPES[plain] ?? [], isOptional: kind.endsWith("?") };
}

/** Whether an event that was read from a file has every field of its type, each of the right kind. */
export function hasValidFields(type: EventType, event: Readonly<Record<string, unknown>>): boolean {
  return (CHECKS.get(type) ?? []).every(({ name, types, isOptional }) => {
    const value = event[name];
    if (value === undefined && isOptional) return true;
    return types.includes(typeof value) && !(typeof value === "number" && !Number.isFinite(value));
  });
}

type EventRecord = Readonly<Record<string, unknown>>;

/** The values of fields that earlier versions did not write. */
const DEFAULTS: { readonly [Type in EventType]?: EventRecord } = {
  http_request: {
    call_id: "",
    // The host.
    final_host: undefined,
    aborted: false,
    background: false,
    breaker_wait_ms: 0,
    unsent_wait_ms: 0,
    unsent_slot_wait_ms: 0,
  },
  http_retry: { call_id: "" },
  // The state is not known, and no report uses it.
  breaker_success: { state: "closed", fail_counter: 0 },
  breaker_failure: { state: "closed", fail_counter: 1 },
  store_away: { mode: "share" },
  store_back: { away_ms: 0 },
};

/**
 * Files of version 0.1 must stay readable: it wrote the key of `limit_learned` as `host`, `from_peer` as `heard`, and
 * events without some fields. Its runs have no `http_attempt`, so their reports count no attempts.
 */
export function withCurrentFields(type: EventType, event: EventRecord): EventRecord {
  if (type === "limit_learned" && typeof event["key"] !== "string") {
    const { host, ...rest } = event;
    return { ...rest, key: host };
  }
  if (type === "breaker_state_change" || type === "breaker_cooldown_set") {
    const { heard, ...rest } = event;
    return heard === undefined || heard === null ? event : { ...rest, from_peer: heard };
  }
  const defaults = DEFAULTS[type];
  if (defaults === undefined) return event;
  const missing = Object.keys(defaults).filter(name => event[name] === undefined || event[name] === null);
  if (missing.length === 0) return event;
  return { ...event, ...Object.fromEntries(missing.map(name => [name, defaults[name] ?? event["host"]])) };
}
