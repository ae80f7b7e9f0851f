import type { Command } from "commander";
import type { PolicyOverrides, PolicySources } from "../../policy/load.ts";
import type { Io } from "../program.ts";

/** The flags that override the policy, the same for every command that has one. */
export function addPolicyFlags(command: Command): void {
  const collect = (value: string, list: readonly string[] = []) => [...list, value];
  command
    .option(
      "--rate <host:role=fields>",
      "limits of a host and role, such as api.example.org:metadata=rates:3/SECOND",
      collect,
    )
    .option("--rate-backend <kind>", "where limits are kept: memory, multiprocess, sqlite or redis")
    .option("--rate-dsn <dsn>", "the file or address of that")
    .option("--max-inflight <count>", "the ceiling over all requests in flight")
    .option("--aimd <fields>", "the adaptive pace, such as enabled:true,decrease:20")
    .option("--breaker <host=fields>", "a host's breaker, such as api.example.org=fail_max:3,reset:60", collect)
    .option("--breaker-role <host:role=fields>", "the breaker of a host's role", collect)
    .option("--breaker-resolver <name=fields>", "a resolver's breaker", collect)
    .option("--breaker-rolling <fields>", "the rolling window, such as thresh:6,window:30,cooldown:60");
}

/** The three layers of a command: files and environment as the process has them, flags as they were given. */
export function policySources(options: Readonly<Record<string, unknown>>, { env }: Io): PolicySources {
  return { env, overrides: options as PolicyOverrides };
}
