import type { Circuit } from "../core/breaker/circuit.ts";
import type { OpenReason } from "../errors.ts";
import type { Time } from "../time/time.ts";
import type { BreakerEmitter } from "./breaker-emitter.ts";
import type { BreakerTable } from "./breaker-table.ts";
import type { CircuitHolder } from "./circuit-holder.ts";
import type { CooldownStarter } from "./cooldown-starter.ts";
import type { HostBreaker } from "./host-breaker.ts";

/** Shares the breakers of this process with its peers. The breakers report each change, and ask before a probe. */
export interface PeerSync {
  /** True while a change comes from a record of the peers, so that it is not published again. */
  readonly isApplyingPeers: boolean;
  cooled(host: HostBreaker, untilUs: number, reason: OpenReason): void;
  cooldownEnded(host: HostBreaker): void;
  hostReset(host: HostBreaker): void;
  changed(holder: CircuitHolder, old: Circuit, now: Circuit): void;
  /** True, or until when the probe is denied. While the peers are being asked, `probeReply` is pending. */
  mayProbe(
    holder: CircuitHolder,
    nowUs: number,
  ): true | { readonly untilUs: number; readonly probeReply: Promise<void> | undefined };
  probeSent(holder: CircuitHolder, permit: number): void;
}

/** The parts of the breakers that a record of the peers may change. */
export interface BreakerSyncDeps {
  readonly table: BreakerTable;
  readonly cooldownStarter: CooldownStarter;
  readonly emitter: BreakerEmitter;
  readonly time: Time;
  readonly lastPermit: () => number;
  readonly unblocked: (blocker: HostBreaker | CircuitHolder) => void;
  readonly reset: (host: HostBreaker) => void;
}
