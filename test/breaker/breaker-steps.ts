/** Random steps for the breakers and their reference model. */
import fc from "fast-check";
import { RESET_MS } from "./breaker-model.ts";

export type BreakerStep =
  | { readonly do: "allow"; readonly host: number; readonly role: number; readonly resolver: number }
  /** `answer` is a 404: neither a success nor a failure, and the host is alive. `neutral` ended without an answer. */
  | { readonly do: "succeed" | "answer" | "neutral" | "release"; readonly which: number }
  /** With `retryAfterMs` the failure is a throttle; 0 is a throttle without Retry-After. */
  | { readonly do: "fail"; readonly which: number; readonly retryAfterMs: number | undefined }
  | { readonly do: "advance" | "stall" | "stepWall"; readonly ms: number }
  | { readonly do: "open"; readonly host: number; readonly seconds: number }
  | { readonly do: "close"; readonly host: number };

const host = fc.nat({ max: 1 });
const which = fc.nat({ max: 20 });
const ms = fc.oneof(
  fc.integer({ min: 0, max: 300 }),
  fc.integer({ min: 0, max: 9000 }),
  fc.constantFrom(RESET_MS, 1500, 2000),
);

export const steps: fc.Arbitrary<readonly BreakerStep[]> = fc.array(
  fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        do: fc.constant("allow" as const),
        host,
        role: fc.nat({ max: 1 }),
        resolver: fc.nat({ max: 1 }),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constantFrom("succeed" as const, "answer" as const, "neutral" as const, "release" as const),
        which,
      }),
    },
    {
      weight: 5,
      arbitrary: fc.record({
        do: fc.constant("fail" as const),
        which,
        retryAfterMs: fc.constantFrom(undefined, undefined, 0, 0, 500, 3000, 99_000),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({ do: fc.constantFrom("advance" as const, "advance" as const, "stall" as const), ms }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant("stepWall" as const), ms: fc.integer({ min: -1e7, max: 1e7 }) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant("open" as const), host, seconds: fc.integer({ min: 1, max: 5 }) }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("close" as const), host }) },
  ),
  { minLength: 50, maxLength: 150, size: "max" },
);
