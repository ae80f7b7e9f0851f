import type { Role } from "../policy/roles.ts";

/** What the gate tells whoever listens; names and fields as the documents list them. */
export type LimiterEvent =
  | {
      readonly event_type: "ratelimit.acquire";
      readonly key: string;
      readonly role: Role;
      readonly rates: string;
      readonly weight: number;
      readonly mode: "block" | "fail";
      readonly blocked_ms: number;
      readonly outcome: "granted" | "refused" | "aborted";
    }
  | { readonly event_type: "ratelimit.cooldown"; readonly key: string; readonly role: Role; readonly seconds: number }
  | { readonly event_type: "rate_head_skipped"; readonly host: string; readonly role: Role }
  | {
      readonly event_type: "aimd_adjust" | "guard_adjust" | "shape_adjust";
      readonly host: string;
      readonly role: Role;
      readonly old: number | string;
      readonly new: number | string;
      readonly reason: string;
    }
  | {
      readonly event_type: "limit_learned";
      readonly host: string;
      readonly role: Role;
      readonly what: "rate" | "concurrency";
      /** As people write it: `10/SECOND`, `max_concurrent 3`; or `none`. */
      readonly old: string;
      readonly new: string;
      /** The family of fields that announced it; `lapsed` when the policy holds again. */
      readonly source: string;
    }
  /** A lane in shadow mode: what would have been done to a request that went at once. */
  | {
      readonly event_type: "ratelimit.shadow";
      readonly key: string;
      readonly role: Role;
      readonly would: "wait" | "refuse";
      /** Undefined when nobody can know. */
      readonly wait_ms: number | undefined;
      /** What is in the way: `10/SECOND of api.example.org`. */
      readonly constraint: string;
    }
  /** The store that processes share is away: each keeps to its share of the limits until it is back. */
  | { readonly event_type: "store_away"; readonly processes: number; readonly message: string }
  | { readonly event_type: "store_back" }
  /** Another process has a stricter policy for this key, and it counts for all. */
  | { readonly event_type: "limit_overruled"; readonly host: string; readonly role: Role };
