import { ConfigError, describeConstraint } from "../../errors.ts";
import { isRole, ROLES, type Role, unknownRoleMessage } from "../../policy/roles.ts";
import { systemTime } from "../../time/system-time.ts";
import { ExitCode } from "../exit-code.ts";
import { painter } from "../output/colour.ts";
import { formatWait } from "../output/duration.ts";
import { formatTable } from "../output/table.ts";
import type { CliCommand, Io } from "../program.ts";
import { addStoreFlags, withOptionalStoreConnection } from "./store-connection.ts";
import {
  type CacheFacts,
  cacheFacts,
  type PolicyFacts,
  policyFacts,
  type SharedFacts,
  sharedFacts,
} from "./why-facts.ts";
import { roleState, type WhyVerdict, whyVerdict } from "./why-verdict.ts";

const COLOURS = { cached: "green", send: "green", probe: "yellow", wait: "yellow", refuse: "red" } as const;

interface Explanation {
  readonly url: string;
  readonly role: Role;
  readonly policy: PolicyFacts;
  readonly shared: SharedFacts;
  readonly cache: CacheFacts;
  readonly verdict: WhyVerdict;
}

/** `docstokg why`: what would become of a request now, and what decides it. Sends nothing. */
export const why: CliCommand = {
  name: "why",
  summary: "say what would become of a request now: cached, sent, kept waiting or refused, and why",
  configure: command => {
    command
      .argument("<url>")
      .option("--role <role>", `one of ${ROLES.join(", ")}`, "metadata")
      .option("--cache <cache>", "the cache that the programs use: sqlite:<file>")
      .option("--json", "print JSON");
    addStoreFlags(command);
  },
  run: async ([text = ""], options, io) => {
    const url = urlOf(text);
    const { role } = options;
    if (!isRole(role)) throw wrong("--role", unknownRoleMessage(role));
    const { time = systemTime } = io;
    return withOptionalStoreConnection(options, io, async connection => {
      const policy = policyFacts(connection.policy, url, role);
      const shared = await sharedFacts(connection, policy, role, time.wallMs());
      const cache = await cacheFacts(options["cache"], url, role, time);
      const verdict = whyVerdict(role, policy, shared, cache);
      const facts: Explanation = { url: redactedUrl(url), role, policy, shared, cache, verdict };
      io.stdout.write(options["json"] ? `${JSON.stringify(jsonOf(facts), undefined, 2)}\n` : textOf(facts, io));
      return ExitCode.ok;
    });
  },
};

function jsonOf({ url, role, policy, shared, cache, verdict }: Explanation) {
  const { host, route, isListed, values } = policy;
  return { url, role, verdict, host, lane: route.name, isListed, shared, cache, policy: values };
}

function textOf({ url, role, policy, shared, cache, verdict }: Explanation, io: Io): string {
  const { host, route, isListed, values } = policy;
  const listingText =
    route.name !== host
      ? `, as a member of ${route.name}`
      : isListed
        ? ", as listed"
        : ", not listed: the defaults hold";
  const facts = [
    ["host", `${host}${listingText}`],
    ["breaker", breakerText(shared, role)],
    ...processTexts(shared).map(text => ["process", text]),
    ["cache", cacheText(cache)],
  ];
  const settings = values.map(({ field, value, sources }) => {
    const { where = "", path = "" } = sources.at(-1) ?? {};
    return [field, Array.isArray(value) ? value.join(" + ") : String(value), `${where}${path ? `  ${path}` : ""}`];
  });
  return [
    `${url} (${role})\n`,
    `${painter(io)(COLOURS[verdict.kind], verdict.text)}\n\n`,
    facts.map(([name = "", text = ""]) => `${name.padEnd(9)}${text}\n`).join(""),
    `\n${formatTable(["setting", "value", "source"], settings, { columns: io.stdout.isTTY ? io.stdout.columns : undefined })}`,
  ].join("");
}

function breakerText(shared: SharedFacts, role: Role): string {
  if (shared.kind === "unknown") return "not known";
  const { state, remainingMs, reason, probes } = roleState(shared.report, role);
  const left = remainingMs > 0 ? ` for another ${formatWait(remainingMs)} (${reason})` : "";
  return `${state}${left}${probes > 0 ? `, trial calls under way: ${probes}` : ""}, in ${shared.place}`;
}

function processTexts(shared: SharedFacts): readonly string[] {
  if (shared.kind === "unknown") return [`not known: ${shared.because}`];
  if (shared.processes.length === 0) return ["none has called there in the last minute"];
  return shared.processes.map(({ pid, program, ageMs, readyMs, constraint, waiting, inFlight, windowFailures }) => {
    const isKnown = constraint?.kind !== "concurrency";
    const ready = readyMs > 0 ? `room in ${formatWait(readyMs)}` : isKnown ? "has room" : "room when a slot is free";
    const held = constraint === undefined || (readyMs === 0 && isKnown) ? "" : ` (${describeConstraint(constraint)})`;
    const failures = windowFailures > 0 ? `, ${windowFailures} failures in its window` : "";
    return `${pid} ${program}: ${ready}${held}, ${inFlight} in flight, ${waiting} waiting${failures}; seen ${formatWait(ageMs)} ago`;
  });
}

function cacheText(cache: CacheFacts): string {
  if (cache.kind === "not-looked-at") return `not looked at: ${cache.because}`;
  if (cache.found.length === 0) return "nothing is stored for this URL";
  return cache.found
    .map(({ status, verdict, freshMs, varies }) => {
      const age =
        verdict === "fresh"
          ? `fresh for ${formatWait(freshMs)}`
          : freshMs < 0
            ? `stale since ${formatWait(-freshMs)}`
            : "to be asked for each time";
      return `${status}, ${age}${varies.length > 0 ? `, for requests with the same ${varies.join(", ")}` : ""}`;
    })
    .join("; ");
}

function urlOf(text: string): URL {
  const url = URL.parse(text);
  if (url !== null && /^https?:$/.test(url.protocol)) return url;
  throw wrong("<url>", "expected a whole URL, http://… or https://…");
}

/** Credentials and queries may be secret, and output is pasted into tickets. */
function redactedUrl({ origin, pathname, search }: URL): string {
  return `${origin}${pathname}${search === "" ? "" : "?…"}`;
}

function wrong(where: string, message: string): ConfigError {
  return new ConfigError([{ where, path: "", message }]);
}
