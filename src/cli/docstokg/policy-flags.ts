import type { Command } from "commander";
import { pickOverrides } from "../../policy/check-sources.ts";
import type { PolicySources } from "../../policy/load.ts";
import type { Io } from "../program.ts";

/** Declares the flags that override the policy. They are the same on every command that reads the policy. */
export function addPolicyFlags(command: Command): void {
  const before = command.options.length;
  const collect = (value: string, list: readonly string[] = []) => [...list, value];
  command
    .option(
      "--rate <host:role=fields>",
      "rate limits of a host (or service:<name>, or defaults) and role; repeatable, e.g. api.example.org:metadata=8/SECOND",
      collect,
    )
    .option("--rate-backend <kind>", "store for rate limits: memory, multiprocess, sqlite, redis or postgres")
    .option("--rate-dsn <dsn>", "file or URL of that store")
    .option(
      "--when-store-away <mode>",
      "what calls do while that store does not answer: share (each process keeps to its share of the limits), wait or refuse",
    )
    .option("--fleet-size <count>", "largest number of processes that share that store")
    .option("--max-inflight <count>", "maximum requests in flight, over all hosts")
    .option("--aimd <fields>", "adaptive rate (AIMD), steps in percent, e.g. enabled:true,decrease:30")
    .option(
      "--breaker <host=fields>",
      "breaker settings of a host (or service:<name>, or defaults), times in seconds; repeatable, e.g. api.example.org=fail_max:3,reset:60",
      collect,
    )
    .option(
      "--breaker-role <host:role=fields>",
      "breaker settings of one role of a host (or service:<name>, or defaults); repeatable, e.g. api.example.org:artifact=fail_max:2",
      collect,
    )
    .option(
      "--breaker-resolver <name=fields>",
      "breaker settings of a resolver; repeatable, e.g. landing_page=fail_max:3",
      collect,
    )
    .option(
      "--breaker-rolling <fields>",
      "rolling failure window, times in seconds, e.g. thresh:4,window:60,cooldown:90",
    );
  for (const option of command.options.slice(before)) option.helpGroup("Policy options (override the policy):");
}

/** The policy flags that name a host, for a command about one host and role: their names among the parsed flags. */
export const ROLE_FLAGS = ["rate", "breaker", "breakerRole"] as const;

/** The sources of a command: the environment of the process (which names the files), the flags, and `--mailto`. */
export function policySources(options: Readonly<Record<string, unknown>>, { env }: Io): PolicySources {
  const { mailto } = options;
  return { env, overrides: pickOverrides(options), mailto: typeof mailto === "string" ? mailto : undefined };
}
