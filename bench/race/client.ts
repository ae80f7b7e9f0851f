/** What a contestant of the race is: a file of `clients/` that exports `open`. */
import type { Dispatcher } from "undici";
import type { Time } from "../../src/time/time.ts";
import type { RaceLimits, RaceRole } from "./limits.ts";

/** What a client is told when it is opened. */
export interface ClientSetup {
  readonly limits: RaceLimits;
  /** For pauses that are drawn. In [0, 1), the same for the same seed. */
  readonly random: () => number;
  /** Where limits are shared with other processes, for those who can. */
  readonly store?: string;
  /** How many processes there are in all. */
  readonly processes: number;
  /** In place of the network, where time is virtual or there are more hosts than a machine has. */
  readonly wire?: Dispatcher;
  /** The clock that goes with it, for those who take one; the globals are the same clock. */
  readonly time?: Time;
}

export interface Client {
  /** One request, its body read to the end; the status that its caller gets in the end. Throws when it gives up. */
  get(url: string, role: RaceRole): Promise<number>;
  close(): Promise<void>;
}

export interface ClientModule {
  open(setup: ClientSetup): Promise<Client>;
}
