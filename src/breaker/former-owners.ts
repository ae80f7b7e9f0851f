import type { BreakerPolicies } from "../policy/breaker-policy.ts";
import { ROLES, type Role } from "../policy/roles.ts";
import { CircuitHolder, type TimedOrder } from "./circuit-holder.ts";
import type { Cooldown } from "./cooldowns.ts";
import { HostBreaker } from "./host-breaker.ts";

/** A call as far as a policy gives it owners. */
interface RoutedCall {
  readonly host: string;
  readonly path: string | undefined;
  /** What the name of its partition adds to that of a host; empty for a call without one. */
  readonly suffix: string;
}

/** The names of the hosts, services and partitions that decide about a call under one policy. */
interface OwnerNames {
  /** The owner of its circuits. */
  readonly circuit: string;
  /** All whose cooldowns and orders apply to it, `circuit` among them. */
  readonly owners: readonly string[];
  /** For a call of a partition: those whose orders alone apply to it. */
  readonly common: readonly string[];
}

/** What denies the calls of one role. */
interface HeldRole {
  /** Its end is the open time; for a half-open circuit, the time of the reload. */
  readonly circuit?: TimedOrder | undefined;
  readonly order?: TimedOrder | undefined;
  readonly hold?: TimedOrder | undefined;
  readonly isRamping: boolean;
}

/** What denies the calls of a host, service or partition. */
interface HeldState {
  readonly requested?: Cooldown | undefined;
  readonly ordered?: Cooldown | undefined;
  readonly roles: ReadonlyMap<Role, HeldRole>;
}

/** An order of an operator that has ended something since a reload. */
interface Ending {
  readonly name: string;
  readonly roles: readonly Role[];
  readonly kind: "host" | "circuit" | "hold";
}

/** What is carried over for the calls to one host. */
interface Carried {
  readonly breaker: HostBreaker;
  /** The hosts, services and partitions whose orders end it. */
  readonly names: readonly string[];
}

interface PastReload {
  /** The policies before it. */
  readonly policies: BreakerPolicies;
  readonly states: ReadonlyMap<string, HeldState>;
  /**
   * The carried state, by its former owner, its call and the new owner. Undefined where it is over: there is one for each
   * host that was called, so that only its key is kept.
   */
  readonly carried: Map<string, Carried | undefined>;
  readonly endings: Map<string, Ending>;
  readonly endUs: number;
}

/** After the last end, calls still resume slowly for this long. Unused hosts are evicted after the same time. */
const RESUME_US = 3_600_000_000;
/** At most this many reloads are remembered, of those after which something is still held or resumes. */
const RELOADS_MAX = 8;
const NO_OWNERS: readonly HostBreaker[] = [];

/**
 * The circuits, cooldowns and orders from before a reload that gives calls other owners. They deny the calls that they
 * denied before, and no others. After their end, the calls resume with the trial calls of their role. They belong to this
 * process alone: they emit no events and are not shared.
 */
export class FormerOwners {
  #reloads: PastReload[] = [];

  /** @param policies before the reload */
  remember(hosts: Iterable<HostBreaker>, policies: BreakerPolicies, nowUs: number): void {
    const states = new Map<string, HeldState>();
    let endUs = nowUs;
    for (const host of hosts) {
      const state = heldStateOf(host, nowUs);
      if (state === undefined) continue;
      states.set(host.name, state);
      endUs = Math.max(endUs, lastEndUs(state));
    }
    this.#dropEnded(nowUs);
    if (states.size === 0) return;
    this.#reloads.push({ policies, states, carried: new Map(), endings: new Map(), endUs });
    if (this.#reloads.length <= RELOADS_MAX) return;
    const firstEndUs = Math.min(...this.#reloads.map(reload => reload.endUs));
    this.#reloads.splice(
      this.#reloads.findIndex(reload => reload.endUs === firstEndUs),
      1,
    );
  }

  /** False after a reload while something was held. */
  get isEmpty(): boolean {
    return this.#reloads.length === 0;
  }

  /** Whether paths of a host may have had owners of their own. */
  hasPaths(host: string): boolean {
    return this.#reloads.some(({ policies }) => policies.hasPaths(host));
  }

  /** What still denies a call besides its owners under the policies of now. */
  of(call: RoutedCall, policies: BreakerPolicies, nowUs: number): readonly HostBreaker[] {
    this.#dropEnded(nowUs);
    if (this.#reloads.length === 0) return NO_OWNERS;
    const now = ownerNames(policies, call);
    return this.#reloads.flatMap(reload => carriedOwners(reload, call, now, policies, nowUs));
  }

  /** Also frees the carried states: there is one for each host that was called meanwhile. */
  #dropEnded(nowUs: number): void {
    if (this.#reloads.some(({ endUs }) => endUs + RESUME_US <= nowUs))
      this.#reloads = this.#reloads.filter(({ endUs }) => endUs + RESUME_US > nowUs);
  }

  /** An operator has closed, half-opened or released something. Returns what it has ended for calls. */
  end(ending: Ending): readonly HostBreaker[] {
    return this.#reloads.flatMap(({ carried, endings }) => {
      endings.set(JSON.stringify(ending), ending);
      return [...carried.values()].flatMap(each =>
        each?.names.includes(ending.name) ? ended(each.breaker, ending) : [],
      );
    });
  }
}

function ownerNames(policies: BreakerPolicies, { host: text, path, suffix }: RoutedCall): OwnerNames {
  const { host, circuit, cooldown } = policies.route(text, path);
  const common = [...new Set([circuit, cooldown, host])];
  if (suffix === "" || !policies.isPerPartition(circuit)) return { circuit, owners: common, common: [] };
  const owners = [...new Set([`${circuit}${suffix}`, `${cooldown}${suffix}`])];
  return { circuit: `${circuit}${suffix}`, owners, common };
}

function carriedOwners(
  { policies: before, states, carried, endings }: PastReload,
  call: RoutedCall,
  now: OwnerNames,
  policies: BreakerPolicies,
  nowUs: number,
): readonly HostBreaker[] {
  const then = ownerNames(before, call);
  return [...then.owners, ...then.common].flatMap(name => {
    const state = states.get(name);
    const left = state && stateLeft(name, state, then, now);
    if (left === undefined) return [];
    const { host } = policies.route(call.host, call.path);
    const key = JSON.stringify([name, `${host}${call.suffix}`, now.circuit]);
    if (!carried.has(key)) {
      const names = [...new Set([name, host, ...now.owners, ...now.common])];
      const breaker = carriedBreaker(name, left, policies, nowUs);
      for (const ending of endings.values()) if (names.includes(ending.name)) ended(breaker, ending);
      carried.set(key, { breaker, names });
    }
    const breaker = carried.get(key)?.breaker;
    if (breaker === undefined || isHeld(breaker, nowUs)) return breaker ?? [];
    carried.set(key, undefined);
    return [];
  });
}

function heldStateOf(host: HostBreaker, nowUs: number): HeldState | undefined {
  const roles = new Map<Role, HeldRole>();
  for (const role of ROLES) {
    const circuit = host.circuits[role];
    const at = circuit?.at(nowUs);
    const untilUs = at?.kind === "open" ? at.untilUs : nowUs;
    const open = at === undefined || at.kind === "closed" ? undefined : ({ untilUs, reason: "failures" } as const);
    const held = { circuit: open, order: circuit?.orderAt(nowUs), hold: host.holdAt(role, nowUs) };
    const isRamping = host.rampUp(role) !== undefined;
    if (isRamping || Object.values(held).some(part => part !== undefined)) roles.set(role, { ...held, isRamping });
  }
  const requested = host.mayHaveCooldown ? host.cooldowns.requested(nowUs) : undefined;
  const ordered = host.orderAt(nowUs);
  if (roles.size === 0 && requested === undefined && ordered === undefined) return undefined;
  return { requested, ordered, roles };
}

function lastEndUs({ requested, ordered, roles }: HeldState): number {
  const parts = [...roles.values()].flatMap(({ circuit, order, hold }) => [circuit, order, hold]);
  return Math.max(...[requested, ordered, ...parts].map(part => part?.untilUs ?? 0));
}

/** The part of a state that denied a call before, and that its new owners do not have. */
function stateLeft(name: string, state: HeldState, then: OwnerNames, now: OwnerNames): HeldState | undefined {
  const hasCircuits = then.circuit === name && now.circuit !== name;
  const hasCooldown = then.owners.includes(name) && !now.owners.includes(name);
  const hasOrders = hasCooldown || (then.common.includes(name) && ![...now.owners, ...now.common].includes(name));
  if (!hasCircuits && !hasOrders) return undefined;
  const isStillOrdered = now.common.includes(name);
  const orders = hasOrders && !isStillOrdered;
  const roles = Array.from(state.roles, ([role, { circuit, order, hold, isRamping }]): [Role, HeldRole] => [
    role,
    {
      circuit: hasCircuits ? circuit : undefined,
      ...(orders && { order, hold }),
      isRamping: hasCooldown && isRamping,
    },
  ]);
  return {
    requested: hasCooldown ? state.requested : undefined,
    ordered: orders ? state.ordered : undefined,
    roles: new Map(roles),
  };
}

function carriedBreaker(
  name: string,
  { requested, ordered, roles }: HeldState,
  policies: BreakerPolicies,
  nowUs: number,
): HostBreaker {
  const breaker = new HostBreaker(name);
  if (requested !== undefined) breaker.cooldowns.set(requested);
  if (ordered !== undefined) breaker.cooldowns.setOrder(ordered);
  const cooldown = ordered ?? requested;
  for (const role of ROLES) {
    const { circuit, order, hold, isRamping = false } = roles.get(role) ?? {};
    if (hold !== undefined) breaker.setHold(role, hold);
    const open = laterOf(circuit, order);
    if (open !== undefined) {
      const holder = new CircuitHolder({ host: name, role }, policies.circuit(name, role), () => undefined);
      holder.setOrder(open);
      breaker.circuits[role] = holder;
    }
    const { reason } = cooldown ?? open ?? { reason: "failures" as const };
    const { trialCalls, maxCalls } = policies.rampUp(role);
    const isOnlyCircuit = cooldown === undefined && order === undefined && !isRamping;
    // After the trial calls of a circuit all calls follow, also where cooldowns have no ramp-up.
    const rampPolicy = { trialCalls, maxCalls: isOnlyCircuit ? trialCalls + 1 : maxCalls };
    if (!isOnlyCircuit || circuit !== undefined) breaker.createRampUp(role).start(reason, rampPolicy, nowUs);
  }
  return breaker;
}

function laterOf(one: TimedOrder | undefined, other: TimedOrder | undefined): TimedOrder | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return one.untilUs > other.untilUs ? one : other;
}

function ended(breaker: HostBreaker, { kind, roles }: Ending): HostBreaker {
  if (kind === "host") breaker.reset();
  for (const role of roles) {
    if (kind === "hold") breaker.setHold(role, undefined);
    else {
      breaker.circuits[role]?.setOrder(undefined);
      breaker.rampUp(role)?.end();
    }
  }
  return breaker;
}

function isHeld(breaker: HostBreaker, nowUs: number): boolean {
  if (breaker.cooldownAt(nowUs) !== undefined || breaker.rampUps().some(({ isOver }) => !isOver)) return true;
  return ROLES.some(
    role => breaker.circuits[role]?.orderAt(nowUs) !== undefined || breaker.holdAt(role, nowUs) !== undefined,
  );
}
