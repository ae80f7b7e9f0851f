/** The stored result of a scenario, as JSON, so that one scenario can be run again alone. */
import { z } from "zod";

const count = z.int().min(0);
const ms = z.number();

const runSchema = z.strictObject({
  client: z.string().min(1),
  /** Why the client was not run; then there are no other fields. */
  cannot: z.string().optional(),
  /** A remark about this run. */
  note: z.string().optional(),
  outcome: z
    .strictObject({
      requests: count,
      succeeded: count,
      failed: count,
      putBack: count,
      makespanMs: ms,
      /** The optimum, and the optimum of a client that keeps the guard and obeys Retry-After. */
      boundMs: ms,
      politeMs: ms,
      cpuUsPerRequest: z.number(),
      memoryMb: z.number(),
      arrivals: count.optional(),
      rejections: count.optional(),
      busiest: z.strictObject({ count, limit: count, windowMs: ms }).optional(),
      outage: z.strictObject({ arrivals: count, recoveryMs: ms.optional() }).optional(),
      hosts: z.strictObject({ met: count, bytesPerHost: z.number() }).optional(),
    })
    .optional(),
});

const resultSchema = z.strictObject({
  version: z.literal(1),
  scenario: z.string().min(1),
  title: z.string(),
  what: z.string(),
  isQuick: z.boolean(),
  date: z.iso.datetime(),
  machine: z.string(),
  /** The load average of the machine before the scenario, over one minute. */
  load: z.number().min(0).optional(),
  versions: z.record(z.string(), z.string()),
  seed: z.string(),
  command: z.string(),
  tookMs: ms,
  runs: z.array(runSchema),
});

export type ClientRun = z.infer<typeof runSchema>;
export type RunOutcome = NonNullable<ClientRun["outcome"]>;
export type ScenarioResult = z.infer<typeof resultSchema>;

/** Parses a stored result. Throws an error that names the file and the problem. */
export function parseResult(text: string, where: string): ScenarioResult {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`${where} is not JSON; delete it and run its scenario again`, { cause: error });
  }
  const parsed = resultSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new Error(`${where} is not a result of the race: ${z.prettifyError(parsed.error)}`);
}
