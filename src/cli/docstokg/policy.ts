import { ROLES } from "../../policy/roles.ts";
import type { CommandModule, Subcommand } from "../program.ts";
import { addPolicyFlags } from "./policy-flags.ts";

const show: Subcommand = {
  name: "show",
  summary: "print the effective rate limits and breaker settings",
  configure: command => {
    command.option("--host <host>", "only this host or URL, all its roles").option("--json", "print JSON");
    addPolicyFlags(command);
  },
  run: async (...call) => (await import("./policy-show.ts")).showPolicy(...call),
};

const explain: Subcommand = {
  name: "explain",
  summary: "print where each value for a host comes from",
  configure: command => {
    command
      .argument("<target>", "a host, a URL, service:<name>, defaults, or resolver:<name>")
      .argument("[role]", `one of ${ROLES.join(", ")} (default: metadata)`)
      .option("--json", "print JSON");
    addPolicyFlags(command);
  },
  run: async (...call) => (await import("./policy-explain.ts")).explainTarget(...call),
};

const check: Subcommand = {
  name: "check",
  summary: "validate the effective policy, or the policy with the given files, and report doubtful settings",
  configure: command => {
    command
      .argument("[file...]", "files to check; - for stdin")
      .option("--strict", "fail on warnings too (exit code 2)")
      .option("--json", "print JSON");
    addPolicyFlags(command);
  },
  run: async (...call) => (await import("./policy-check.ts")).checkPolicies(...call),
};

/** `docstokg policy`: which limits and breaker settings are effective, where they come from, and what is wrong with them. */
export const policy: CommandModule = { commands: [show, explain, check] };
