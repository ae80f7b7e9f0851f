import { Command } from "commander";
import { quote } from "../../core/text/quote.ts";
import { redactedText } from "../../core/text/redaction.ts";
import type { DecidedBy } from "../../errors.ts";
import { redactedPath } from "../../harvest/redacted-url.ts";
import type { LoadedPolicy } from "../../policy/load.ts";
import { decidedByOf } from "../../policy/provenance.ts";
import { isRole, ROLES, unknownRoleMessage } from "../../policy/roles.ts";
import { systemTime } from "../../time/system-time.ts";
import { ExitCode } from "../exit-code.ts";
import { printJson } from "../output/json.ts";
import type { CommandModule } from "../program.ts";
import { usageError } from "../usage-error.ts";
import { addPolicyFlags, ROLE_FLAGS } from "./policy-flags.ts";
import { policyInUse } from "./policy-in-use.ts";
import { addStoreFlag, openOptionalStoreConnection } from "./store-connection.ts";
import { cacheFacts, type PolicyFacts, policyFacts, type SharedFacts, sharedFacts } from "./why-facts.ts";
import { type Explanation, explanationText } from "./why-text.ts";
import { type WhyVerdict, whyVerdict } from "./why-verdict.ts";

/** `docstokg why`: what would happen to a request now, and which limit decides. Sends nothing. */
export const why: CommandModule = {
  configure: command => {
    command
      .argument("<url>", "URL of the request")
      .option("--role <role>", `one of ${ROLES.join(", ")}`, "metadata")
      .option(
        "--cache <cache>",
        "cache file of the running programs, to include it in the answer: sqlite:<file> (default: not read)",
      )
      .option("--json", "print JSON");
    addStoreFlag(command);
    addRoleFlags(command);
  },
  run: async ([text = ""], flags, io) => {
    const url = urlOf(text);
    const { role, cache: cacheFlag } = flags;
    if (!isRole(role)) throw usageError("--role", unknownRoleMessage(role));
    if (role === "artifact" && cacheFlag !== undefined)
      throw usageError("--cache", "has no effect with --role artifact: artifact responses are not cached");
    const { time = systemTime } = io;
    await using connection = await openOptionalStoreConnection(flags, io);
    const inUse = await policyInUse(connection, flags);
    const policy = policyFacts(inUse.policy, url, role);
    const isOfCommand = ROLE_FLAGS.some(flag => flags[flag] !== undefined);
    const shared = await sharedFacts(connection, policy, isOfCommand, flags, io);
    const cache = await cacheFacts(cacheFlag, url, role, time);
    const verdict = whyVerdict(role, policy, shared, cache);
    const decidedBy = decidedByOfVerdict(verdict, policy, inUse.policy, shared);
    const explanation: Explanation = { url: shownUrl(url), role, policy, inUse, shared, cache, verdict, decidedBy };
    if (flags["json"]) printJson(io, jsonOf(explanation));
    else io.stdout.write(explanationText(explanation, io));
    return ExitCode.ok;
  },
};

/** The setting behind the limit that decides, by the policy of the process that the verdict is about. */
function decidedByOfVerdict(
  { constraint }: WhyVerdict,
  { host, sentKeys, url, role }: PolicyFacts,
  policy: LoadedPolicy,
  shared: SharedFacts,
): DecidedBy | null {
  if (constraint === null) return null;
  const [first] = shared.kind === "connected" ? shared.processes : [];
  if (first?.constraint === constraint && first.decidedBy !== null) return first.decidedBy;
  return decidedByOf(policy, constraint, { host, role, path: url.pathname + url.search, sentKeys }, first);
}

function addRoleFlags(command: Command): void {
  const all = new Command();
  addPolicyFlags(all);
  const names: ReadonlySet<string> = new Set(ROLE_FLAGS);
  for (const option of all.options) if (names.has(option.attributeName())) command.addOption(option);
}

function jsonOf({ url, role, policy, inUse, shared, cache, verdict, decidedBy }: Explanation) {
  const { host, route, isListed, values } = policy;
  const { source, pids, otherPids } = inUse;
  const policySource = { kind: source, pids, otherPids };
  return {
    url,
    role,
    verdict,
    decidedBy,
    host,
    key: route.name,
    isListed,
    shared,
    cache,
    policySource,
    policy: values,
  };
}

function urlOf(text: string): URL {
  const url = URL.parse(text);
  if (url !== null && /^https?:$/.test(url.protocol)) return url;
  throw usageError("<url>", `${quote(redactedText(text))} is not an absolute URL; expected http://… or https://…`);
}

/** Without credentials and query, which may be secret: this output is pasted into tickets. */
function shownUrl({ origin, pathname, search }: URL): string {
  return `${origin}${redactedPath(pathname)}${search === "" ? "" : "?…"}`;
}
