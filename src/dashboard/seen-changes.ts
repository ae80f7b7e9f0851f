import type { EventRow, HostState, OrderState, ProcessState } from "./dashboard-state.ts";

type Line = Omit<EventRow, "seq" | "atMs">;

/** The state of a source without events at one instant. */
export interface SeenState {
  readonly hosts: ReadonlyMap<string, HostState>;
  readonly processes: readonly ProcessState[];
}

/** The changes between two states, as lines of the page: circuits, paces, cooldowns of keys, and processes. */
export function seenChanges(before: SeenState, after: SeenState): readonly Line[] {
  const lines: Line[] = [];
  for (const host of after.hosts.values()) lines.push(...hostChanges(before.hosts.get(host.name), host));
  for (const [name, host] of before.hosts) {
    // A record that has expired means that every circuit of the host is closed.
    if (!after.hosts.has(name) && host.state !== "closed")
      lines.push(line("circuit", name, "", `circuit ${host.state} → closed`, "info"));
  }
  const known = new Set(before.processes.map(({ id }) => id));
  const running = new Set(after.processes.map(({ id }) => id));
  for (const process of after.processes)
    if (!known.has(process.id)) lines.push(line("process", "", "", `process ${nameOf(process)} is listed`, "info"));
  for (const process of before.processes)
    if (!running.has(process.id))
      lines.push(line("process", "", "", `process ${nameOf(process)} has ended or is idle`, "info"));
  return lines;
}

function hostChanges(before: HostState | undefined, after: HostState): readonly Line[] {
  const lines: Line[] = [];
  const was = before?.state ?? "closed";
  if (after.state !== was || (after.state === "open" && after.reason !== before?.reason)) {
    const reason = after.reason === null ? "" : `: ${after.reason}`;
    lines.push(
      line(
        "circuit",
        after.name,
        "",
        `circuit ${was} → ${after.state}${reason}`,
        after.state === "open" ? "bad" : "info",
      ),
    );
  }
  lines.push(...totalChanges(before, after));
  for (const key of after.keys) {
    const known = before?.keys.find(({ role }) => role === key.role);
    if (known === undefined) continue;
    if (known.pace !== key.pace)
      lines.push(line("pace", after.name, key.role, `pace ${percent(known.pace)} → ${percent(key.pace)}`, "warn"));
    if (!known.isHeld && key.isHeld)
      lines.push(line("cooldown", after.name, key.role, `held for ${Math.ceil(key.newCallMs / 1000)} s`, "warn"));
    lines.push(...orderChanges(after.name, key.role, known.order, key.order));
    const refused = key.refused - known.refused;
    if (refused > 0)
      lines.push({ ...line("refused", after.name, key.role, `${refused} refused`, "warn"), isRoutine: true });
  }
  return lines;
}

/** All keys that count in a total have the same order for it. */
function totalChanges(before: HostState | undefined, after: HostState): readonly Line[] {
  const orderIn = (host: HostState) => host.keys.find(({ totalOrder }) => totalOrder !== null)?.totalOrder ?? null;
  return before === undefined ? [] : orderChanges(after.name, "total", orderIn(before), orderIn(after));
}

/** An operator has changed the limits of a key or total, or such an order has ended. */
function orderChanges(
  host: string,
  role: string,
  before: OrderState | null,
  after: OrderState | null,
): readonly Line[] {
  if (after === null)
    return before === null ? [] : [line("limit", host, role, "the limits of the policy apply again", "info")];
  const { limits, by, reason, isLooser } = after;
  if (before?.limits === limits && before.by === by && before.reason === reason) return [];
  const looser = isLooser ? ", looser than the policy" : "";
  return [line("limit", host, role, `limit set to ${limits}${looser}: ${reason} (${by})`, "warn")];
}

function line(type: string, host: string, role: string, text: string, level: Line["level"]): Line {
  return { type, host, role, text, level, isRoutine: false };
}

function nameOf({ program, pid, machine }: ProcessState): string {
  return `${program} (pid ${pid} on ${machine})`;
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
