import { isClearedSince, restoreOrders } from "./breaker-order.ts";
import { type BreakerRecord, circuitRecordOf } from "./breaker-record.ts";

/**
 * Puts back what `record` has lost and a process still knows: orders, circuits that were opened, and cooldowns. Serials
 * never fall in a store, so a lower one shows that the store has lost its last changes. Returns `record` itself if it
 * lacks nothing.
 */
export function restoreLost(record: BreakerRecord, known: BreakerRecord): BreakerRecord {
  return restoreStates(restoreOrders(record, known), known);
}

function restoreStates(record: BreakerRecord, known: BreakerRecord): BreakerRecord {
  const lost = Object.entries(known.circuits).flatMap(([name, circuit]) => {
    const stored = circuitRecordOf(record, name);
    const isLost = !circuit.isClosed && circuit.serial > stored.serial;
    if (!isLost || isClearedSince(record, known, name)) return [];
    // An order to open that was given since then stays: it does not change the serial of the circuit.
    const isOrderNewer = (stored.order?.serial ?? 0) > (circuit.order?.serial ?? 0);
    return [[name, isOrderNewer ? { ...circuit, order: stored.order } : circuit]];
  });
  const { serverCooldown } = known;
  const isCooldownLost =
    serverCooldown.untilUs > 0 &&
    serverCooldown.serial > record.serverCooldown.serial &&
    !isClearedSince(record, known);
  if (lost.length === 0 && !isCooldownLost) return record;
  return {
    ...record,
    ...(isCooldownLost && { serverCooldown }),
    circuits: { ...record.circuits, ...Object.fromEntries(lost) },
  };
}
