import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseRates, type Rate } from "../core/limits/rate.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { ROLES, type Role } from "../policy/roles.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { BreakerRegistry } from "./breaker-registry.ts";
import { Gate } from "./gate.ts";
import { breakersOf } from "./registry-breakers.ts";

const HOST = "a.example";
const ROLE = { rates: "6/SECOND", guard_ms: 0, max_delay_ms: 0 };
const DEFAULTS = { metadata: ROLE, landing: ROLE, artifact: ROLE };

interface Order {
  readonly rates: readonly Rate[];
  readonly maxConcurrent: number | undefined;
  readonly isForced: boolean;
  readonly endUs: number;
}

type Step =
  | { readonly kind: "send"; readonly role: Role }
  | { readonly kind: "end" }
  | { readonly kind: "advance"; readonly ms: number }
  | {
      readonly kind: "set";
      readonly rates: string;
      readonly maxConcurrent: number | undefined;
      readonly ms: number;
      readonly isForced: boolean;
    }
  | { readonly kind: "reset" };

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...ROLES).map((role): Step => ({ kind: "send", role })) },
    { weight: 4, arbitrary: fc.constant<Step>({ kind: "end" }) },
    {
      weight: 3,
      arbitrary: fc.constantFrom(1, 100, 500, 999, 1000, 4000).map((ms): Step => ({ kind: "advance", ms })),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant("set" as const),
        rates: fc.constantFrom("2/SECOND", "9/SECOND", "1/3SECOND", "3/SECOND+20/MINUTE", "20/SECOND"),
        maxConcurrent: fc.constantFrom(undefined, 1, 3, 8),
        ms: fc.constantFrom(500, 3000, 60_000),
        isForced: fc.boolean(),
      }),
    },
    { weight: 1, arbitrary: fc.constant<Step>({ kind: "reset" }) },
  ),
  { minLength: 10, maxLength: 120 },
);

for (const total of [undefined, { rates: "8/SECOND", guard_ms: 0, max_concurrent: 4 }])
  test(`every request keeps the ordered total of its host, which ${total === undefined ? "adds one to" : "changes that of"} the policy`, () => {
    fc.assert(
      fc.property(steps, sequence => {
        const time = new FakeTime();
        const breakers = new BreakerRegistry({}, { time, random: () => 0 });
        const hosts = total === undefined ? {} : { [HOST]: { total } };
        const gate = new Gate(limitPoliciesFrom({ defaults: DEFAULTS, hosts }, "test"), time, { breakers });
        const target = { unit: HOST, role: "total" } as const;
        const sentUs: number[] = [];
        const open: { release(): void }[] = [];
        let ordered: Order | undefined;
        for (const step of sequence) {
          const nowUs = time.monotonicUs();
          if (step.kind === "advance") time.tick(step.ms);
          else if (step.kind === "end") open.shift()?.release();
          else if (step.kind === "reset") {
            breakersOf(breakers).giveOrder(target, { kind: "reset-limit", reason: "test", by: "test" });
            ordered = undefined;
          } else if (step.kind === "set") {
            const { ms, maxConcurrent, isForced } = step;
            const limits = { rates: parseRates(step.rates), maxConcurrent, isForced };
            breakersOf(breakers).giveOrder(target, { kind: "set-limit", ms, ...limits, reason: "test", by: "test" });
            ordered = { ...limits, endUs: nowUs + ms * 1000 };
          } else {
            const grant = gate.tryEnter({ host: HOST, role: step.role });
            if (grant === undefined) continue;
            grant.written();
            open.push(grant);
            sentUs.push(nowUs);
            const order = ordered !== undefined && ordered.endUs > nowUs ? ordered : undefined;
            const own = total === undefined || order?.isForced ? [] : parseRates(total.rates);
            for (const { limit, windowUs } of [...own, ...(order?.rates ?? [])]) {
              const inWindow = sentUs.filter(us => us > nowUs - windowUs).length;
              assert.ok(
                inWindow <= limit,
                `${inWindow} of ${limit} within ${windowUs / 1000} ms at ${nowUs / 1000} ms`,
              );
            }
            const isReplaced = order?.isForced === true && order.maxConcurrent !== undefined;
            const caps = [isReplaced ? undefined : total?.max_concurrent, order?.maxConcurrent];
            for (const cap of caps)
              if (cap !== undefined) assert.ok(open.length <= cap, `${open.length} of ${cap} in flight`);
          }
        }
      }),
      { numRuns: 200 },
    );
  });
