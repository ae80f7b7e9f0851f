import type { Blocker } from "../breaker/breaker-change.ts";
import type { RoleBudget } from "../limiter/role-budget.ts";
import type { StoreAway } from "./store-outage.ts";

/** What has changed at the peers since the gate took the last changes. */
export type PeerChange =
  /** Waiting requests of this role budget may have the leases and records that they lacked. */
  | { readonly kind: "ready"; readonly roleBudget: RoleBudget }
  /** The store may have units of this role budget before the time that it has announced. */
  | { readonly kind: "earlier"; readonly roleBudget: RoleBudget }
  /** The store that shares limits or breakers is away; `away` is undefined when it is back. */
  | { readonly kind: "store"; readonly shares: "limits" | "breakers"; readonly away: StoreAway | undefined }
  /** The peers have replied whether this process may probe: requests that wait for it are to be tried again. */
  | { readonly kind: "unblocked"; readonly blocker: Blocker }
  /** Another process has stricter limits for this role budget, which apply to all. */
  | { readonly kind: "overruled"; readonly roleBudget: RoleBudget };
