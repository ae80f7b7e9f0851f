import type { OpenReason } from "../errors.ts";
import { ROLES, type Role } from "../policy/roles.ts";
import type { BreakerChange } from "./breaker-change.ts";
import type { BreakerTable } from "./breaker-table.ts";
import type { HostBreaker } from "./host-breaker.ts";
import type { IssuedCall } from "./permit.ts";
import { NO_RAMP_UPS, type RampUp } from "./ramp-up.ts";

/** The ramp-ups of all hosts and services of a process (law B12), and their changes for the gate. */
export class RampUps {
  readonly #table: BreakerTable;
  readonly #record: (change: BreakerChange) => void;

  constructor(table: BreakerTable, record: (change: BreakerChange) => void) {
    this.#table = table;
    this.#record = record;
  }

  /** A cooldown of a host has started: after it, these roles resume with their trial calls. */
  start(host: HostBreaker, reason: OpenReason, roles: readonly Role[] = ROLES): void {
    for (const role of roles) {
      const rampUp = host.createRampUp(role);
      rampUp.start(reason, this.#table.policies.rampUp(role));
      this.#changed(rampUp);
    }
  }

  /** All traffic of the host, or of one role, flows again. */
  end(host: HostBreaker, role?: Role): void {
    for (const rampUp of host.rampUps()) {
      if (role !== undefined && rampUp.name.role !== role) continue;
      rampUp.end();
      this.#changed(rampUp);
    }
  }

  answered({ rampUps, number }: IssuedCall): void {
    for (const rampUp of rampUps) if (rampUp.answer(number)) this.#changed(rampUp);
  }

  failed({ rampUps, number }: IssuedCall): void {
    for (const rampUp of rampUps) if (rampUp.fail(number)) this.#changed(rampUp);
  }

  left({ rampUps, number }: IssuedCall): void {
    for (const rampUp of rampUps) if (rampUp.leave(number)) this.#changed(rampUp);
  }

  #changed(blocker: RampUp): void {
    this.#record({ kind: "ramp-up", origin: "local", blocker });
  }
}

/** The ramp-ups that a call with these units passes. Nearly always none, and nothing is allocated. */
export function rampUpsOf(units: Iterable<HostBreaker>, role: Role): readonly RampUp[] {
  let found: RampUp[] | undefined;
  for (const unit of units) {
    const rampUp = unit.mayHaveCooldown ? unit.rampUp(role) : undefined;
    if (rampUp !== undefined && !found?.includes(rampUp)) found = [...(found ?? []), rampUp];
  }
  return found ?? NO_RAMP_UPS;
}
