import type { Time } from "../time/time.ts";
import { type Budget, budgetsAbove } from "./budget.ts";
import type { Charge } from "./charge.ts";
import { type EstimatedStart, type LateWaiter, QueueEstimate } from "./queue-estimate.ts";
import { RoleBudget } from "./role-budget.ts";
import { type SchedulerNode, topOf } from "./scheduler-node.ts";
import type { Waiter } from "./waiter.ts";

/**
 * Timers fire late, so requests start later than estimated. If the difference is larger than this, a new estimate is
 * made. For a short queue a smaller difference is enough.
 */
const DRIFT_US = 5000;
/**
 * For each waiting request, an estimate may be wrong by this much more, and is kept this much longer: a longer queue
 * takes longer to estimate.
 */
const REBUILD_US = 20;
/** How often an estimate is made again without the requests that it found to be late. */
const ROUNDS_MAX = 4;

/**
 * When the requests of a scheduler start (law L4). An estimate is kept while it holds. Requests that may start later than
 * estimated are suspects: `takeLate` compares them with their bounds.
 */
export class StartEstimates {
  readonly #time: Time;
  readonly #wake: () => void;
  readonly #nodes: ReadonlyMap<Budget | string, SchedulerNode>;
  /** Nodes below the root whose requests may start later than estimated. */
  readonly #suspects = new Set<SchedulerNode>();

  /** `wake` is called when there are new suspects because time has passed. */
  constructor(time: Time, wake: () => void, nodes: ReadonlyMap<Budget | string, SchedulerNode>) {
    this.#time = time;
    this.#wake = wake;
    this.#nodes = nodes;
  }

  /** When a new request of this role budget would start, behind the queues (law L4). */
  startOf(roleBudget: RoleBudget, charge: Charge, nowUs: number): EstimatedStart {
    const top = topOf(this.#nodes, roleBudget);
    if (top !== undefined && this.#isOnlyQueue(top, roleBudget))
      top.estimate = estimateAt(top, nowUs) ?? new QueueEstimate(top, nowUs);
    const known = top && estimateAt(top, nowUs)?.peek(roleBudget, charge, nowUs);
    return known ?? this.#startAmong(roleBudget, nowUs, estimate => estimate.startOf(roleBudget, charge));
  }

  /**
   * The same at little cost: exact if there is only one queue, else a lower bound. A request that a lower bound admits
   * is judged again by `takeLate`.
   */
  earliestStartUs(roleBudget: RoleBudget, charge: Charge, nowUs: number): number {
    const leastUs = roleBudget.freeUs(charge, nowUs);
    const top = topOf(this.#nodes, roleBudget);
    if (top === undefined || !this.#isOnlyQueue(top, roleBudget)) return leastUs;
    top.estimate = estimateAt(top, nowUs) ?? new QueueEstimate(top, nowUs);
    return Math.max(leastUs, top.estimate.peek(roleBudget, charge, nowUs)?.startUs ?? 0);
  }

  /** When a queued request will start, whatever its bound. */
  startOfQueued(waiter: Waiter, nowUs: number): EstimatedStart {
    return this.#startAmong(waiter.roleBudget, nowUs, estimate => estimate.startOfQueued(waiter));
  }

  /**
   * When a new usual request of each role budget would start, if it were the only new one. One estimate serves all role
   * budgets below a node that have a free slot of their own.
   */
  startsOf(roleBudgets: readonly RoleBudget[], nowUs: number): ReadonlyMap<RoleBudget, EstimatedStart> {
    const starts: [RoleBudget, EstimatedStart][] = [];
    for (const [top, ofTop] of Map.groupBy(roleBudgets, roleBudget => topOf(this.#nodes, roleBudget))) {
      // Of one request, the slots of all budgets count as free: so do those above a group.
      for (const [slotless, group] of Map.groupBy(ofTop, slotlessOf)) {
        if (slotless instanceof RoleBudget)
          starts.push([slotless, this.startOf(slotless, slotless.usualCharge, nowUs)]);
        else starts.push(...new QueueEstimate(top, nowUs, slotless).startsOf(group));
      }
    }
    return new Map(starts);
  }

  /**
   * If the request stays, others may be late. They are refused at once, so the estimate is made again without them until
   * no other one is late.
   */
  #startAmong(roleBudget: RoleBudget, nowUs: number, ask: (estimate: QueueEstimate) => EstimatedStart): EstimatedStart {
    const refused = new Set<Waiter>();
    for (let round = 1; ; round += 1) {
      const estimate = new QueueEstimate(topOf(this.#nodes, roleBudget), nowUs, roleBudget, refused);
      const start = ask(estimate);
      const late = round < ROUNDS_MAX ? estimate.takeLate() : [];
      if (late.length === 0) return start;
      for (const { waiter } of late) refused.add(waiter);
    }
  }

  /** Whether no other queue has requests below the node. */
  #isOnlyQueue({ waiting }: SchedulerNode, roleBudget: RoleBudget): boolean {
    return waiting === this.#nodes.get(roleBudget)?.waiting;
  }

  get hasSuspects(): boolean {
    return this.#suspects.size > 0;
  }

  /**
   * Queued requests that can no longer start within their bounds (law L4). Only those are judged whose start may have
   * become later since the last call.
   */
  takeLate(nowUs: number): readonly LateWaiter[] {
    const late: LateWaiter[] = [];
    for (const top of this.#suspects) {
      if (top.bounded === 0 && top.estimate === undefined) {
        // None can be late, so none is estimated: that would visit each request again for each that arrives.
        top.slackUs = Number.POSITIVE_INFINITY;
        top.hasDue = false;
        this.#judgeAgain(top, false);
        continue;
      }
      let estimate = top.estimate ?? new QueueEstimate(top, nowUs);
      let found = estimate.takeLate();
      // Not `push(...found)`: more than about 100,000 arguments overflow the stack.
      for (const each of found) late.push(each);
      // Without them the turns change, so that others may be late. In one queue those behind only start earlier.
      const refused = new Set<Waiter>();
      for (let round = 1; found.length > 0 && !estimate.isOneQueue && round < ROUNDS_MAX; round += 1) {
        for (const { waiter } of found) refused.add(waiter);
        estimate = new QueueEstimate(top, nowUs, undefined, refused);
        found = estimate.takeLate();
        for (const each of found) late.push(each);
      }
      top.estimate = estimate.isOneQueue ? estimate : undefined;
      top.slackUs = estimate.slackUs;
      top.hasDue = estimate.hasDue;
      this.#judgeAgain(top, estimate.hasPending);
    }
    this.#suspects.clear();
    return late;
  }

  /** While units are granted and not written, starts move with the time: none can be late before the slack is used up. */
  #judgeAgain(top: SchedulerNode, hasPending: boolean): void {
    top.slackTimer?.cancel();
    top.slackTimer = undefined;
    if (hasPending) this.#judgeIn(top, top.slackUs);
  }

  #judgeIn(top: SchedulerNode, us: number): void {
    if (us === Number.POSITIVE_INFINITY) return;
    top.slackTimer = this.#time.setTimer(us / 1000, () => {
      top.slackTimer = undefined;
      top.estimate = undefined;
      this.#suspects.add(top);
      this.#wake();
    });
  }

  /** A request was granted or written later than estimated, so the requests behind it are later too. */
  delayed(budget: Budget, byUs: number): void {
    const top = byUs > 0 ? topOf(this.#nodes, budget) : undefined;
    if (top === undefined) return;
    if (byUs > Math.min(DRIFT_US, REBUILD_US * top.waiting, top.slackUs)) this.changed(budget);
  }

  /** Requests that pass this budget may start later than estimated. */
  changed(budget: Budget): void {
    const top = topOf(this.#nodes, budget);
    if (top === undefined) return;
    top.estimate = undefined;
    this.#suspects.add(top);
  }

  /**
   * The store has replied to a request of this role budget. Unless its first request starts so much later that another one
   * may miss its bound, no request is judged: a reply comes for each unit, and a judgement visits all requests below a
   * shared budget.
   */
  replied(roleBudget: RoleBudget, nowUs: number): void {
    const top = topOf(this.#nodes, roleBudget);
    if (top === undefined) return;
    top.estimate = undefined;
    const first = this.#nodes.get(roleBudget)?.queue?.first;
    if (first?.estimatedUs === undefined) return;
    const slackUs = top.hasDue ? 0 : top.slackUs;
    if (roleBudget.freeUs(first.charge, nowUs) - first.estimatedUs > slackUs) this.#suspects.add(top);
  }

  /** The estimate of requests that pass this budget does not hold any more; none of them starts later. */
  drop(budget: Budget): void {
    const top = topOf(this.#nodes, budget);
    if (top !== undefined) top.estimate = undefined;
  }

  /** The request has joined the queue of its role budget. */
  joined(waiter: Waiter, nowUs: number): void {
    const { roleBudget } = waiter;
    const top = topOf(this.#nodes, roleBudget);
    if (top === undefined) return;
    // A request that joins the only queue delays no other one.
    top.estimate = this.#isOnlyQueue(top, roleBudget) ? estimateAt(top, nowUs) : undefined;
    top.estimate?.append(waiter, nowUs);
    this.#suspects.add(top);
  }

  /** A request was granted. An estimate counts it as written now; until it is written, requests behind it start later. */
  granted(roleBudget: RoleBudget): void {
    const top = roleBudget.hasPending ? topOf(this.#nodes, roleBudget) : undefined;
    if (top !== undefined && top.slackTimer === undefined)
      this.#judgeIn(top, Math.max(top.slackUs, estimateKeptUs(top)));
  }

  /** The node has no request any more. */
  forget(node: SchedulerNode): void {
    node.slackTimer?.cancel();
    this.#suspects.delete(node);
  }
}

/** The lowest budget of a request that lacks a slot. */
function slotlessOf(roleBudget: RoleBudget): Budget | undefined {
  return [roleBudget, ...budgetsAbove(roleBudget)].find(({ hasSlot }) => !hasSlot);
}

/**
 * The estimate of a node, if it still holds. While units are granted and not written, its starts move with the time, and
 * it is made again; less often for a long queue, because that takes some time for each request.
 */
function estimateAt({ estimate, waiting }: SchedulerNode, nowUs: number): QueueEstimate | undefined {
  const isMoved = estimate?.hasPending === true && nowUs - estimate.madeUs > estimateKeptUs({ waiting });
  return isMoved ? undefined : estimate;
}

/** How long an estimate is kept while units are granted and not written. */
function estimateKeptUs({ waiting }: Pick<SchedulerNode, "waiting">): number {
  return DRIFT_US + REBUILD_US * waiting;
}
