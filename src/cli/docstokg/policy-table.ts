import type { FindingRule } from "../../policy/finding.ts";
import { lintPolicy } from "../../policy/lint.ts";
import type { LoadedPolicy } from "../../policy/load.ts";
import { type PolicyRow, policyRows } from "../../policy/policy-row.ts";
import { ROLES } from "../../policy/roles.ts";
import { formatTable, longest } from "../output/table.ts";

/**
 * The effective policy with one line per host, for the start of a run. If that is wider than `columns`, only the
 * defaults are printed: a table of every host in its long form would fill several screens before the run starts.
 */
export function compactPolicy(policy: LoadedPolicy, columns = Number.POSITIVE_INFINITY): string {
  const rows = policyRows(policy);
  const header = ["host", ...ROLES, "total", "max delay", "HEAD", "concurrent", "failures / reset (metadata)"];
  const table = formatTable(header, hostCells(rows));
  if (longest(table.split("\n"), line => line.length) <= columns) return `${policyHead(policy)}\n\n${table}\n`;
  return `${policyHead(policy)}\n\n${defaultsTable(rows, columns)}\nFor the limits of each host run: docstokg policy show\n\n`;
}

/** Findings that a user must not miss: settings without effect, and limits that are not enforced or looser than shipped. */
const SHOWN_RULES: ReadonlySet<FindingRule> = new Set([
  "dead-override",
  "partial-override",
  "role-above-total",
  "looser-than-shipped",
  "counted-apart",
  "orphaned-member",
  "shadow-mode",
  "similar-host",
]);
const SHOWN_MAX = 5;

/** The warnings of `policy check` that concern the start of a run, one line each; empty if there are none. */
export function policyWarnings(policy: LoadedPolicy): string {
  const found = lintPolicy(policy).filter(({ rule, severity }) => severity === "warning" && SHOWN_RULES.has(rule));
  const lines = found.slice(0, SHOWN_MAX).map(({ message, rule }) => `warning: ${message} [${rule}]\n`);
  const more = found.length - lines.length;
  return [...lines, ...(more > 0 ? [`and ${more} more: docstokg policy check\n`] : [])].join("");
}

/** `backend memory, AIMD off, at most 500 requests in flight`. */
function policyHead(policy: LoadedPolicy): string {
  const { aimd, maxInFlight } = policy.ratelimits.resolved;
  const backend = policy.ratelimits.options.backend?.kind ?? "memory";
  const inFlight = Number.isFinite(maxInFlight)
    ? `at most ${maxInFlight} requests in flight`
    : "requests in flight not limited";
  return `backend ${backend}, AIMD ${aimd.enabled ? "on" : "off"}, ${inFlight}`;
}

function hostCells(rows: readonly PolicyRow[]): readonly (readonly string[])[] {
  const hosts = Map.groupBy(rows, ({ host }) => host);
  return [...hosts].map(([host, ofHost]) => {
    const roles = ROLES.flatMap(role => ofHost.find(row => row.role === role) ?? []);
    const [metadata] = roles;
    return [
      host,
      ...roles.map(({ rates }) => rates || "unlimited"),
      ofHost.flatMap(totalText).join("; "),
      byRole(roles.map(delayText)),
      byRole(roles.map(headText)),
      byRole(roles.map(({ maxConcurrent }) => (maxConcurrent === undefined ? "unlimited" : String(maxConcurrent)))),
      metadata === undefined ? "" : breakerText(metadata),
    ];
  });
}

/** `10/SECOND`; with the service, if it is the total of one: `10/SECOND (service arxiv)`. None for the row of a role. */
function totalText({ role, rates }: PolicyRow): readonly string[] {
  const [, owner] = /^total(?: of (.+))?$/.exec(role) ?? [];
  if (!role.startsWith("total") || rates === "") return [];
  return [owner === undefined ? rates : `${rates} (${owner})`];
}

function defaultsTable(rows: readonly PolicyRow[], columns: number): string {
  const defaults = rows.filter(({ host }) => host === rows[0]?.host);
  const header = ["defaults", "rates", "max delay", "HEAD", "concurrent", "failures / reset"];
  const cells = defaults.map(row => [
    row.role,
    row.rates || "unlimited",
    delayText(row),
    headText(row),
    row.maxConcurrent === undefined ? "unlimited" : String(row.maxConcurrent),
    breakerText(row),
  ]);
  return formatTable(header, cells, { columns });
}

/** One value if all roles have the same; otherwise one per role, in the order of the role columns. */
function byRole(values: readonly string[]): string {
  return new Set(values).size === 1 ? (values[0] ?? "") : values.join(" / ");
}

function delayText({ maxDelayMs }: PolicyRow): string {
  return maxDelayMs === undefined ? "" : `${maxDelayMs} ms`;
}

function headText({ countsHead }: PolicyRow): string {
  return countsHead === undefined ? "" : countsHead ? "counted" : "not counted";
}

function breakerText({ failMax, resetS }: PolicyRow): string {
  return failMax === undefined ? "by host" : `${failMax} / ${resetS} s`;
}
