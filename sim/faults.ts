import type { Clock } from "./clock.ts";
import type { SimFact } from "./facts.ts";
import type { Machine } from "./machine.ts";
import type { Fault } from "./plan.ts";
import type { SimProcess } from "./sim-process.ts";
import type { SimServer } from "./sim-server.ts";
import type { SimStore } from "./sim-store.ts";

/** The parts of a simulation that faults change. */
export interface FaultDeps {
  readonly clock: Clock;
  readonly machine: Machine;
  readonly servers: ReadonlyMap<string, SimServer>;
  readonly store: SimStore | undefined;
  readonly processes: readonly SimProcess[];
  readonly process: (number: number) => SimProcess;
  readonly emit: (fact: SimFact) => void;
}

/** Schedules the start and the end of a fault. */
export function scheduleFault(fault: Fault, deps: FaultDeps): void {
  const { clock, machine, servers, store, process, processes, emit } = deps;
  const at = (ms: number, isOver: boolean, run: () => void) =>
    clock.at(ms * 1000, undefined, () => {
      emit({ kind: "fault", atUs: clock.nowUs, fault, isOver });
      run();
    });
  const during = (begin: () => void, end: () => void) => {
    at(fault.atMs, false, begin);
    if ("ms" in fault) at(fault.atMs + fault.ms, true, end);
  };
  const change = (changes: Partial<Pick<SimServer, "outage" | "throttle" | "lie">>) => {
    if ("host" in fault) Object.assign(servers.get(fault.host) as SimServer, changes);
  };
  const setAway = (how: SimStore["away"]) => {
    if (store !== undefined) store.away = how;
  };
  switch (fault.kind) {
    case "stall":
      during(
        () => process(fault.process).time.stall(fault.ms * 1000),
        () => undefined,
      );
      return;
    case "suspend":
      during(
        () => machine.suspend(fault.ms * 1000),
        () => undefined,
      );
      return;
    case "wall-step":
      at(fault.atMs, true, () => process(fault.process).time.stepWall(fault.ms));
      return;
    case "kill":
      at(fault.atMs, true, () => {
        process(fault.process).time.isDead = true;
      });
      return;
    case "outage":
      during(
        () => change({ outage: fault }),
        () => change({ outage: undefined }),
      );
      return;
    case "throttle":
      during(
        () => change({ throttle: fault }),
        () => change({ throttle: undefined }),
      );
      return;
    case "lie":
      during(
        () => change({ lie: fault }),
        () => change({ lie: undefined }),
      );
      return;
    case "store-away":
      during(
        () => setAway(fault.isSilent ? "silent" : "refusing"),
        () => setAway(undefined),
      );
      return;
    case "store-restart":
      at(fault.atMs, true, () => store?.restart());
      return;
    case "store-loss":
      at(fault.atMs, true, () => store?.rollBack(fault.lostMs * 1000));
      return;
    case "reload":
      for (const each of processes) {
        const { factor, hasTotals } = fault;
        const version = { factor, hasTotals, isPartitioned: fault.isPartitioned !== false };
        clock.at(fault.atMs * 1000, each.time, () => void each.reload(version));
      }
      return;
    case "operator":
      clock.at(fault.atMs * 1000, process(fault.process).time, () => {
        emit({ kind: "fault", atUs: clock.nowUs, fault, isOver: true });
        process(fault.process).operate(fault.host, fault.openS);
      });
  }
}
