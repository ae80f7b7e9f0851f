/** A client of the race: a file of `clients/` that exports `open`. */
import type { Dispatcher } from "undici";
import type { Time } from "../../src/time/time.ts";
import type { RaceLimits, RaceRole } from "./limits.ts";

/** The setup of a client. */
export interface ClientSetup {
  readonly limits: RaceLimits;
  /** Random numbers in [0, 1) for pauses; equal for equal seeds. */
  readonly random: () => number;
  /** The store through which a client can share limits with other processes. */
  readonly store?: string;
  /** Number of processes. */
  readonly processes: number;
  /** Replaces the network in scenarios with virtual time or very many hosts. */
  readonly wire?: Dispatcher;
  /** The virtual clock, for clients that accept one; the global timers use the same clock. */
  readonly time?: Time;
}

export interface Client {
  /** Sends one request and reads its body. Returns the final status; throws if the client gives up. */
  get(url: string, role: RaceRole): Promise<number>;
  close(): Promise<void>;
}

export interface ClientModule {
  open(setup: ClientSetup): Promise<Client>;
}
