import type { EntryRequest } from "./entry-request.ts";
import type { Grant } from "./grant.ts";
import type { RoleBudget } from "./role-budget.ts";

/** A request that waits. */
export interface Waiter {
  /** Changes when the limits are reloaded. */
  roleBudget: RoleBudget;
  /** Units that it uses of every window; 0 for a request that the windows do not count. */
  readonly units: number;
  /** When it is expected to start. An estimate for requests behind it, not a reservation (law L2). */
  estimatedUs: number;
  /** Sequence number of its last unit in the queue's count of units. */
  lastUnit: number;
  hasLeft: boolean;
  readonly call: EntryRequest;
  readonly arrivedUs: number;
  /** When the circuit or cooldown that blocked it ended; 0 if none did. */
  blockedUntilUs: number;
  /** It does not wait for a circuit or cooldown whose known end is later than this. */
  readonly latestStartUs: number;
  /** Called once, with the grant. */
  readonly granted: (grant: Grant) => void;
  /** Called once, instead of `granted`. The request has left its queue by then. */
  readonly refused: (error: Error) => void;
}
