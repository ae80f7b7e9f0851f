import type { ConfigProblem } from "../errors.ts";
import type { Assignment, PolicyLayer, SectionName } from "./layer.ts";
import {
  type KnownNames,
  parseScalar,
  readBreakerOverride,
  readBreakerRoleOverride,
  readFields,
  readRateOverride,
  readResolverOverride,
} from "./overrides.ts";
import { ProblemList } from "./problem-list.ts";

/** The strongest layer of a policy: what command-line flags set. Each text has the form of its flag. */
export interface PolicyOverrides {
  /**
   * Limits of a host and role, as `--rate` takes them: `api.example.org:metadata=rates:3/SECOND,max_delay_ms:500`. The
   * role may be `total`; in place of the host `service:<name>`, or `defaults`. @default none
   */
  readonly rate?: readonly string[] | undefined;
  /** Where limits are stored: memory, multiprocess, sqlite, redis or postgres. @default from the policy */
  readonly rateBackend?: string | undefined;
  /** File (sqlite) or URL (redis, postgres) of that store. @default from the policy */
  readonly rateDsn?: string | undefined;
  /** What calls do while the shared store does not answer: share, wait or refuse. @default from the policy */
  readonly whenStoreAway?: string | undefined;
  /** The largest number of processes that share the store, 1 or more. @default from the policy */
  readonly fleetSize?: string | number | undefined;
  /** Maximum number of requests in flight over all hosts, 1 or more. @default from the policy */
  readonly maxInflight?: string | number | undefined;
  /** Fields of `aimd`: `enabled:true,decrease:20`. @default from the policy */
  readonly aimd?: string | undefined;
  /**
   * Breaker settings of a host, of `service:<name>` or of `defaults`: `api.example.org=fail_max:3,reset:60`.
   * @default none
   */
  readonly breaker?: readonly string[] | undefined;
  /** Breaker settings of a host's role: `api.example.org:artifact=fail_max:2`. @default none */
  readonly breakerRole?: readonly string[] | undefined;
  /** Breaker settings of a resolver: `landing_page=fail_max:4`. @default none */
  readonly breakerResolver?: readonly string[] | undefined;
  /** Fields of the rolling window: `thresh:6,window:30,cooldown:60`. @default from the policy */
  readonly breakerRolling?: string | undefined;
}

/** The values that flags set for the limits or for the breakers. */
export function readFlags(section: SectionName, flags: PolicyOverrides, names: KnownNames): PolicyLayer {
  const reader = new FlagReader();
  if (section === "ratelimits") {
    const numberOf = (value: string | number | undefined) => (typeof value === "string" ? parseScalar(value) : value);
    reader.read("--rate", flags.rate, (value, where) => readRateOverride(value, where, names));
    reader.set("--rate-backend", ["backend", "kind"], flags.rateBackend);
    reader.set("--rate-dsn", ["backend", "dsn"], flags.rateDsn);
    reader.set("--when-store-away", ["backend", "when_store_away"], flags.whenStoreAway);
    reader.set("--fleet-size", ["backend", "fleet_size"], numberOf(flags.fleetSize));
    reader.set("--max-inflight", ["global", "max_inflight"], numberOf(flags.maxInflight));
    reader.read("--aimd", [flags.aimd], (value, where) => readFields(value, ["aimd"], where));
  } else {
    reader.read("--breaker", flags.breaker, (value, where) => readBreakerOverride(value, where, names));
    reader.read("--breaker-role", flags.breakerRole, (value, where) => readBreakerRoleOverride(value, where, names));
    reader.read("--breaker-resolver", flags.breakerResolver, (value, where) =>
      readResolverOverride(value, where, names),
    );
    reader.read("--breaker-rolling", [flags.breakerRolling], (value, where) =>
      readFields(value, ["advanced", "rolling_window"], where),
    );
  }
  return reader;
}

class FlagReader implements PolicyLayer {
  readonly assignments: Assignment[] = [];
  readonly #list = new ProblemList();

  get problems(): readonly ConfigProblem[] {
    return this.#list.problems;
  }

  read(
    where: string,
    values: readonly (string | undefined)[] | undefined,
    parse: (value: string, where: string) => readonly Assignment[],
  ): void {
    for (const value of values ?? []) {
      if (value === undefined) continue;
      try {
        this.assignments.push(...parse(value, where));
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
        this.#list.add(() => ({ where, path: "", message: error.message }));
      }
    }
  }

  set(where: string, path: readonly string[], value: unknown): void {
    if (value !== undefined) this.assignments.push({ path, value, where });
  }
}
