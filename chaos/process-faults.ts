/** Faults of processes, and of their connections to the store. */
import type { Random } from "../sim/random.ts";
import type { ChaosProcess } from "./chaos-process.ts";
import type { Fault, FaultKind } from "./fault.ts";

const nothing = async () => undefined;

const kill: FaultKind = {
  name: "kill",
  draw: (random, fleet) => {
    const process = random.pick(fleet);
    return {
      name: "kill",
      detail: `process ${process.index}`,
      durationMs: random.whole(0, 2000),
      separated: 0,
      returnsStore: false,
      begin: () => process.kill(),
      end: () => process.start(),
    };
  },
};

const suspend: FaultKind = {
  name: "suspend",
  draw: (random, fleet) => {
    const process = random.pick(fleet);
    return {
      name: "suspend",
      detail: `process ${process.index}`,
      durationMs: random.whole(200, 6000),
      separated: 0,
      returnsStore: false,
      begin: async () => process.suspend(),
      end: async () => process.resume(),
    };
  },
};

const stall: FaultKind = {
  name: "stall",
  draw: (random, fleet) => {
    const process = random.pick(fleet);
    const stallMs = random.whole(300, 2500);
    return {
      name: "stall",
      detail: `process ${process.index}`,
      durationMs: stallMs,
      separated: 0,
      returnsStore: false,
      begin: async () => process.stall(stallMs),
      end: nothing,
    };
  },
};

function partition(name: string, isForAll: boolean): FaultKind {
  return {
    name,
    draw: (random, fleet) => {
      const separated = isForAll ? fleet : some(random, fleet);
      const how = random.pick(["cut", "silence"] as const);
      return {
        name,
        detail: `${how}, processes ${separated.map(({ index }) => index).join(" ")}`,
        durationMs: random.whole(300, 5000),
        separated: isForAll ? 0 : separated.length,
        returnsStore: true,
        begin: async () => {
          for (const { link } of separated) link[how]();
        },
        end: async () => {
          for (const { link } of separated) link.heal();
        },
      };
    },
  };
}

const delay: FaultKind = {
  name: "delay",
  draw: (random, fleet) => {
    const ms = random.whole(10, 250);
    const slow = random.chance(0.5) ? fleet : some(random, fleet);
    return {
      name: "delay",
      detail: `${ms} ms, processes ${slow.map(({ index }) => index).join(" ")}`,
      durationMs: random.whole(1000, 5000),
      separated: 0,
      returnsStore: true,
      begin: async () => {
        for (const { link } of slow) link.delay(ms);
      },
      end: async () => {
        for (const { link } of slow) link.heal();
      },
    };
  },
};

/** All processes are started again while the store cannot be reached: none of them knows the others. */
const startWithoutStore: FaultKind = {
  name: "start-without-store",
  draw: (random, fleet) => {
    const how = random.pick(["cut", "silence"] as const);
    return {
      name: "start-without-store",
      detail: how,
      durationMs: random.whole(1000, 4000),
      separated: 0,
      returnsStore: true,
      begin: async () => {
        await Promise.all(fleet.map(process => process.kill()));
        for (const { link } of fleet) link[how]();
        await Promise.all(fleet.map(process => process.start()));
      },
      end: async () => {
        for (const { link } of fleet) link.heal();
      },
    };
  },
};

/** At least one process, and not all. */
function some(random: Random, fleet: readonly ChaosProcess[]): readonly ChaosProcess[] {
  const count = random.whole(1, Math.max(1, fleet.length - 1));
  const left = [...fleet];
  return Array.from({ length: count }, () => left.splice(random.whole(0, left.length - 1), 1))
    .flat()
    .sort((a, b) => a.index - b.index);
}

export const PROCESS_FAULTS: readonly FaultKind[] = [kill, suspend, stall];
/** For stores with servers: a file has no connection that could be interrupted. */
export const LINK_FAULTS: readonly FaultKind[] = [
  partition("partition-some", false),
  partition("partition-all", true),
  startWithoutStore,
  delay,
];

/** A fault of the store, during which a process is killed, suspended or blocked too. */
export function withProcessFault(fault: Fault, random: Random, fleet: readonly ChaosProcess[]): Fault {
  const second = random.pick(PROCESS_FAULTS).draw(random, fleet);
  return {
    ...fault,
    detail: [fault.detail, `with ${second.name} of ${second.detail}`].filter(Boolean).join(", "),
    durationMs: Math.max(fault.durationMs, second.durationMs),
    begin: async () => {
      await second.begin();
      await fault.begin();
    },
    end: async () => {
      await fault.end();
      await second.end();
    },
  };
}
