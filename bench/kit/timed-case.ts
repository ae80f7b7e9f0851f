/** Cases that are timed in nanoseconds. Each calls a function with a host. */
import type { TimedCase } from "./timing.ts";

/** The cells of a case in a table, its name first. */
interface CaseLabel {
  readonly name: string;
}

/** Calls go through a closure that is not inlined, as in a program and not as in an empty loop. */
export function syncCase<Label extends CaseLabel>(
  kind: Label,
  hosts: readonly string[],
  call: (host: string) => boolean,
  isGranted: boolean,
): Label & TimedCase {
  let at = 0;
  return {
    ...kind,
    run(calls) {
      let granted = 0;
      for (let made = 0; made < calls; made += 1) {
        at = at + 1 < hosts.length ? at + 1 : 0;
        if (call(hosts[at] as string)) granted += 1;
      }
      check(kind.name, granted, isGranted ? calls : 0);
    },
  };
}

/** One call after the other, each awaited. A refusal is a rejection. */
export function asyncCase<Label extends CaseLabel>(
  kind: Label,
  hosts: readonly string[],
  call: (host: string) => unknown,
  isGranted: boolean,
): Label & TimedCase {
  let at = 0;
  return {
    ...kind,
    async run(calls) {
      let granted = 0;
      for (let made = 0; made < calls; made += 1) {
        at = at + 1 < hosts.length ? at + 1 : 0;
        try {
          await call(hosts[at] as string);
          granted += 1;
        } catch (refusal) {
          // An error of the benchmark itself must not be timed as a refusal.
          if (refusal instanceof TypeError) throw refusal;
        }
      }
      check(kind.name, granted, isGranted ? calls : 0);
    },
  };
}

/** Many calls at once, for a library that starts every job from a timer: one by one, the timer would be measured. */
export function batchCase<Label extends CaseLabel>(
  kind: Label,
  hosts: readonly string[],
  call: (host: string) => Promise<unknown>,
): Label & TimedCase {
  const batch = 20;
  let at = 0;
  return {
    ...kind,
    leastCalls: batch,
    async run(calls) {
      for (let left = calls; left > 0; left -= batch) {
        const running: Promise<unknown>[] = [];
        while (running.length < Math.min(batch, left)) {
          at = at + 1 < hosts.length ? at + 1 : 0;
          running.push(call(hosts[at] as string));
        }
        await Promise.all(running);
      }
    },
  };
}

function check(name: string, granted: number, expected: number): void {
  if (granted !== expected) throw new Error(`${name} granted ${granted} calls, expected ${expected}`);
}
