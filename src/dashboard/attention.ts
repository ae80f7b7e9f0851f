import type { HostState, WindowState } from "./dashboard-state.ts";

type Unranked = Omit<HostState, "attention" | "why">;

/** A long window that is used beyond this share needs attention. A window of seconds is full each time a key is busy. */
const NEARLY_USED = 0.9;
const LONG_RATE = /\/\d*\s*(?:m|min|minutes?|h|hours?|d|days?)$/i;
/** Each level is above every rank of the level below it. */
const LEVEL = 1_000_000;
const RANK_MAX = LEVEL - 1;

/**
 * How much attention a host needs, and why. Within a level, the larger amount comes first. The levels:
 *   6  an open circuit
 *   5  a half-open circuit
 *   4  limits looser than the policy, a cooldown, or a pace that a server has slowed down
 *   3  a queue
 *   2  recent failures
 *   1  a long window that is nearly used
 */
export function attentionOf(host: Unranked): Pick<HostState, "attention" | "why"> {
  const rank = (level: number, amount: number, why: string) => ({
    attention: level * LEVEL + Math.min(RANK_MAX, Math.max(0, Math.round(amount))),
    why,
  });
  const waiting = sum(host.keys, key => key.waiting);
  const queued = waiting > 0 ? `, ${waiting} queued` : "";
  if (host.state === "open") return rank(6, waiting + 1, `${openText(host)}${queued}`);
  if (host.state === "half_open") return rank(5, waiting + 1, `half-open: trial calls decide${queued}`);
  const [looser] = host.keys.flatMap(({ role, order, totalOrder }) => [
    ...(order?.isLooser ? [`${role}: ${order.limits}`] : []),
    ...(totalOrder?.isLooser ? [`total: ${totalOrder.limits}`] : []),
  ]);
  if (looser !== undefined) return rank(4, RANK_MAX, `${looser} is looser than the policy${queued}`);
  const [held] = host.keys.filter(({ isHeld }) => isHeld).toSorted((a, b) => b.newCallMs - a.newCallMs);
  if (held !== undefined) return rank(4, held.newCallMs, `${held.role} in cooldown${queued}`);
  const [slow] = host.keys.filter(({ pace }) => pace < 1).toSorted((a, b) => a.pace - b.pace);
  if (slow !== undefined)
    return rank(4, (1 - slow.pace) * 100, `${slow.role} slowed to ${percent(slow.pace)}${queued}`);
  const [queue] = host.keys.filter(key => key.waiting > 0).toSorted((a, b) => b.newCallMs - a.newCallMs);
  if (queue !== undefined) return rank(3, queue.newCallMs, `${waiting} queued for ${queue.limitedBy ?? queue.role}`);
  if (host.windowFailures > 0)
    return rank(
      2,
      host.windowFailures,
      `${host.windowFailures} recent ${host.windowFailures === 1 ? "failure" : "failures"}`,
    );
  const [fullest] = host.keys
    .flatMap(({ windows }) => windows.filter(({ rate }) => LONG_RATE.test(rate)))
    .toSorted((a, b) => shareOf(b) - shareOf(a));
  if (fullest !== undefined && shareOf(fullest) >= NEARLY_USED)
    return rank(1, shareOf(fullest) * 100, `${percent(shareOf(fullest))} of ${fullest.rate} used`);
  return rank(0, 0, "");
}

function shareOf({ used, limit }: WindowState): number {
  return limit > 0 ? used / limit : 0;
}

function openText({ reason, circuits }: Unranked): string {
  const roles = circuits.filter(({ state, role }) => state === "open" && role !== "").map(({ role }) => role);
  const of = roles.length > 0 ? ` for ${roles.join(", ")}` : "";
  return `circuit open${of}: ${reason ?? "unknown reason"}`;
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

function sum<Item>(items: readonly Item[], of: (item: Item) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}
