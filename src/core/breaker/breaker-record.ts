/**
 * What processes know together of one host, or of one resolver: its cooldowns, its circuits, the probes that are out.
 * Pure: a step takes what is known and answers with what is known next, or with the same when nothing changed.
 *
 * Every change of a part gives it another serial. A process remembers the serials it has heard, so that it can tell
 * news from what it knows, and one that speaks of an older state than the one there is changes nothing (law B3). They
 * rise with the store's clock: a store that has lost everything does not use one twice.
 * Instants are those of the store's clock, and their names end in `Us`.
 */
export interface BreakerRecord {
  /** Another one with each closing by an operator: whoever hears of it forgets what it holds against the host. */
  readonly epoch: number;
  /** What the host's answers asked for, and what an operator ordered, apart (law B5). */
  readonly serverCooldown: BreakerCooldownRecord;
  readonly operatorCooldown: BreakerCooldownRecord;
  /** By role. A resolver has one circuit. */
  readonly circuits: Readonly<Record<string, CircuitRecord>>;
}

/** Over when `untilUs` has passed; one that was ended early stays as such, so that everybody hears of it. */
export interface BreakerCooldownRecord {
  readonly serial: number;
  readonly untilUs: number;
  readonly reason: string;
}

export interface CircuitRecord {
  readonly serial: number;
  readonly isClosed: boolean;
  /** Open until then, half-open from then on. */
  readonly untilUs: number;
  readonly reopened: number;
  readonly probes: readonly ProbeRecord[];
}

/** A trial call under way in some process, which may die over it. */
export interface ProbeRecord {
  readonly id: string;
  readonly expiresUs: number;
}

const NO_COOLDOWN: BreakerCooldownRecord = Object.freeze({ serial: 0, untilUs: 0, reason: "" });
const NO_CIRCUIT: CircuitRecord = Object.freeze({ serial: 0, isClosed: true, untilUs: 0, reopened: 0, probes: [] });

export const EMPTY_BREAKER_RECORD: BreakerRecord = Object.freeze({
  epoch: 0,
  serverCooldown: NO_COOLDOWN,
  operatorCooldown: NO_COOLDOWN,
  circuits: {},
});

/** What is over is still told for so long, to those who ask seldom. */
const RETENTION_US = 900_000_000;

export function circuitRecordOf({ circuits }: BreakerRecord, name: string): CircuitRecord {
  return circuits[name] ?? NO_CIRCUIT;
}

/** The later deadline counts. */
export function setCooldown(
  host: BreakerRecord,
  part: "serverCooldown" | "operatorCooldown",
  { untilUs, reason }: { readonly untilUs: number; readonly reason: string },
  nowUs: number,
): BreakerRecord {
  const known = host[part];
  if (known.untilUs >= untilUs) return host;
  return { ...host, [part]: { serial: nextSerial(known.serial, nowUs), untilUs, reason } };
}

/** A success ends what answers asked for, if that is the cooldown it knew of; never an order. */
export function endServerCooldown(host: BreakerRecord, serial: number, nowUs: number): BreakerRecord {
  const { serverCooldown } = host;
  if (serverCooldown.serial !== serial || serverCooldown.untilUs === 0) return host;
  return { ...host, serverCooldown: { serial: nextSerial(serial, nowUs), untilUs: 0, reason: "" } };
}

/** A process has counted too many failures, or its probe has failed. One that is open already stays so for longer. */
export function openCircuit(
  host: BreakerRecord,
  name: string,
  { untilUs, reopened }: { readonly untilUs: number; readonly reopened: number },
  nowUs: number,
): BreakerRecord {
  const known = circuitRecordOf(host, name);
  if (!known.isClosed && known.untilUs >= untilUs) return host;
  const most = known.isClosed ? reopened : Math.max(reopened, known.reopened);
  return withCircuit(host, name, { ...known, isClosed: false, untilUs, reopened: most, probes: [] }, nowUs);
}

/** A probe has come back well. Not when the circuit was opened anew since the probe went out. */
export function closeCircuit(host: BreakerRecord, name: string, id: string, nowUs: number): BreakerRecord {
  const known = circuitRecordOf(host, name);
  if (known.isClosed || known.probes.every(probe => probe.id !== id)) return host;
  return withCircuit(host, name, { ...NO_CIRCUIT, serial: known.serial }, nowUs);
}

/**
 * One more probe, if the open time is over and there is room for it among those of all processes. The same host means
 * no. One that nobody has heard of, because the store has lost it, is taken for half-open: whoever asks knows it is.
 */
export function leaseProbe(
  host: BreakerRecord,
  name: string,
  probe: ProbeRecord,
  trialCalls: number,
  nowUs: number,
): BreakerRecord {
  const known = circuitRecordOf(host, name);
  const isLost = known.serial === 0;
  if ((known.isClosed && !isLost) || known.untilUs > nowUs) return host;
  const running = known.probes.filter(({ expiresUs }) => expiresUs > nowUs);
  if (running.length >= trialCalls) return host;
  return withCircuit(host, name, { ...known, isClosed: false, probes: [...running, probe] }, nowUs);
}

/** Neither success nor failure: somebody else may try. */
export function returnProbeLease(host: BreakerRecord, name: string, id: string, nowUs: number): BreakerRecord {
  const known = circuitRecordOf(host, name);
  const probes = known.probes.filter(probe => probe.id !== id);
  return probes.length === known.probes.length ? host : withCircuit(host, name, { ...known, probes }, nowUs);
}

/** An operator's act: nothing is held against it any more. */
export function clearBreakerRecord(host: BreakerRecord, nowUs: number): BreakerRecord {
  const ended = ({ serial }: BreakerCooldownRecord) => ({ serial: nextSerial(serial, nowUs), untilUs: 0, reason: "" });
  const circuits = Object.entries(host.circuits).map(([name, { serial }]) => [
    name,
    { ...NO_CIRCUIT, serial: nextSerial(serial, nowUs) },
  ]);
  return {
    epoch: nextSerial(host.epoch, nowUs),
    serverCooldown: ended(host.serverCooldown),
    operatorCooldown: ended(host.operatorCooldown),
    circuits: Object.fromEntries(circuits),
  };
}

/** The cooldown that ends last, if any is still running. */
export function runningCooldown(
  { serverCooldown, operatorCooldown }: BreakerRecord,
  nowUs: number,
): BreakerCooldownRecord | undefined {
  const last = operatorCooldown.untilUs >= serverCooldown.untilUs ? operatorCooldown : serverCooldown;
  return last.untilUs > nowUs ? last : undefined;
}

/** From when on nobody misses it. */
export function breakerRecordExpiryUs(
  { serverCooldown, operatorCooldown, circuits }: BreakerRecord,
  nowUs: number,
): number {
  let lastUs = Math.max(nowUs, serverCooldown.untilUs, operatorCooldown.untilUs);
  for (const { untilUs, probes } of Object.values(circuits))
    lastUs = Math.max(lastUs, untilUs, ...probes.map(({ expiresUs }) => expiresUs));
  return lastUs + RETENTION_US;
}

function withCircuit(host: BreakerRecord, name: string, circuit: CircuitRecord, nowUs: number): BreakerRecord {
  return { ...host, circuits: { ...host.circuits, [name]: { ...circuit, serial: nextSerial(circuit.serial, nowUs) } } };
}

function nextSerial(serial: number, nowUs: number): number {
  return Math.max(serial + 1, Math.floor(nowUs));
}
