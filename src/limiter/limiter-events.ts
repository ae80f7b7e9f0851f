import type { StoreEvent } from "../core/store-event.ts";
import type { LimitPart, Role } from "../policy/roles.ts";

/** An event of the limiter, by `event_type`. Names and fields are documented and stable. */
export type LimiterEvent =
  /** A request was granted or refused, or aborted while it waited. */
  | {
      readonly event_type: "ratelimit.acquire";
      /** Name of the host, or `service <name>`. */
      readonly key: string;
      /** `metadata`, `landing` or `artifact`. */
      readonly role: Role;
      /** The rates of the key, joined by `+`: `10/SECOND+5000/HOUR`. */
      readonly rates: string;
      /** Units that the request uses of every window; 0 for a HEAD that is not counted. */
      readonly weight: number;
      /** What the request uses of other units, `credits 10`, joined by commas; absent if its limits count none. */
      readonly costs?: string | undefined;
      /** `fail` for a call that never waits, and for a refusal on arrival; else `block`. */
      readonly mode: "block" | "fail";
      /** Milliseconds that the request waited. */
      readonly blocked_ms: number;
      /**
       * For a granted request that waited: the setting it waited for longest, and where it was set, as in
       * `10/SECOND (ratelimits.yaml:34)`. Absent without a hub.
       */
      readonly decided_by?: string;
      /** `aborted`: the caller ended its request while it waited. */
      readonly outcome: "granted" | "refused" | "aborted";
    }
  /** The true cost of a request is known, and differs from what it was charged. */
  | {
      readonly event_type: "ratelimit.settle";
      /** Name of the host, or `service <name>`. */
      readonly key: string;
      /** `metadata`, `landing` or `artifact`. */
      readonly role: Role;
      /** The unit, `credits`. */
      readonly unit: string;
      /** Units that it was charged. */
      readonly charged: number;
      /** Units that it has really used. */
      readonly used: number;
    }
  /** The key is held: no request of it is sent for `seconds`. */
  | {
      readonly event_type: "ratelimit.cooldown";
      /** Name of the host, or `service <name>`. */
      readonly key: string;
      /** `metadata`, `landing` or `artifact`. */
      readonly role: Role;
      /** Length of the cooldown. */
      readonly seconds: number;
    }
  /** A HEAD was granted without using units (`count_head: false`). */
  | {
      readonly event_type: "rate_head_skipped";
      /** Name of the host, or `service <name>`. */
      readonly host: string;
      /** `metadata`, `landing` or `artifact`. */
      readonly role: Role;
    }
  /** The pace of a key changed: its multiplier (AIMD), its guard in milliseconds, or its shape (`burst`, `smooth`). */
  | {
      readonly event_type: "aimd_adjust" | "guard_adjust" | "shape_adjust";
      /** Name of the host, or `service <name>`. */
      readonly host: string;
      /** `metadata`, `landing` or `artifact`. */
      readonly role: Role;
      /** The value before. */
      readonly old: number | string;
      /** The value now. */
      readonly new: number | string;
      /** Why it has changed. */
      readonly reason: string;
    }
  /** The server announced a tighter limit, or a learned limit has lapsed. */
  | {
      readonly event_type: "limit_learned";
      /** Name of the host, or `service <name>`. */
      readonly key: string;
      /** `metadata`, `landing` or `artifact`. */
      readonly role: Role;
      /** Which limit of the key: its rates, or `max_concurrent`. */
      readonly what: "rate" | "concurrency";
      /** The limit as the policy writes it, `10/SECOND` or `max_concurrent 3`; `none` if there was none. */
      readonly old: string;
      /** As `old`. */
      readonly new: string;
      /** The family of header fields that announced it; `lapsed` when the policy's own limit is back in force. */
      readonly source: string;
    }
  /** An operator has changed the limits of a key or total, or such an order has ended. */
  | {
      readonly event_type: "limit_ordered";
      /** Name of the host, or `service <name>`. */
      readonly key: string;
      /** `total` for the total of a host or service. */
      readonly role: LimitPart;
      /**
       * The rates in force before, `10/SECOND+5000/HOUR`; `none` if there were none. With `, max_concurrent 3` if the order
       * changes it.
       */
      readonly old: string;
      /** The rates in force now, as `old`. */
      readonly new: string;
      /** How long the order lasts; 0 if it has ended. */
      readonly seconds: number;
      /** What the operator has written, or why the order has ended. */
      readonly reason: string;
      /** The operator that gave the order; empty if its time is over. */
      readonly by: string;
      /** True if the order allows more than the policy, which needs `force`. */
      readonly is_looser: boolean;
    }
  /** A key in shadow mode: what enforcing would have done to a request that was sent at once. */
  | {
      readonly event_type: "ratelimit.shadow";
      /** Name of the host, or `service <name>`. */
      readonly key: string;
      /** `metadata`, `landing` or `artifact`. */
      readonly role: Role;
      /** What enforcing would have done. */
      readonly would: "wait" | "refuse";
      /** Estimated wait in milliseconds; undefined for a missing slot, whose release time is unknown. */
      readonly wait_ms: number | undefined;
      /** The limit that decided: `10/SECOND of api.example.org`. */
      readonly constraint: string;
      /** The setting that decided and where it was set: `10/SECOND (ratelimits.yaml:34)`. Absent without a hub. */
      readonly decided_by?: string;
    }
  | StoreEvent
  /** Another process has a stricter policy for this key. The strictest one applies to all processes. */
  | {
      readonly event_type: "limit_overruled";
      /** Name of the host, or `service <name>`. */
      readonly host: string;
      /** `metadata`, `landing` or `artifact`. */
      readonly role: Role;
    };
