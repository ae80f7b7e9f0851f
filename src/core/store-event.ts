/** The events of a shared store, of the limiter and of the breakers. */
export type StoreEvent =
  /** The shared store does not answer. Once for each outage. */
  | {
      readonly event_type: "store_away";
      /** The number of processes that the limits are divided by; 1 if it is not known, or if only breakers are shared. */
      readonly processes: number;
      /**
       * What calls do until the store is back: `share` uses this process's share of each limit and its own circuits,
       * `wait` queues them, `refuse` fails them.
       */
      readonly mode: "share" | "wait" | "refuse";
      /** The error of the store. */
      readonly message: string;
    }
  /** The shared store answers again. Once for each outage. */
  | {
      readonly event_type: "store_back";
      /** Milliseconds since `store_away`. */
      readonly away_ms: number;
    };
