import type { LoadedPolicy } from "../../policy/load.ts";
import { type PolicyRow, policyRows } from "../../policy/policy-row.ts";
import { ROLES } from "../../policy/roles.ts";
import { formatTable } from "../output/table.ts";

/**
 * The limits that hold, one line for each host: the short form, for the start of a run. Where it is wider than
 * `columns` it could not be read, and a line says where it is to be had.
 */
export function compactPolicy(policy: LoadedPolicy, columns = Number.POSITIVE_INFINITY): string {
  const hosts = new Map<string, Map<string, PolicyRow>>();
  for (const row of policyRows(policy)) {
    const roles = hosts.get(row.host) ?? new Map<string, PolicyRow>();
    roles.set(row.role, row);
    hosts.set(row.host, roles);
  }
  const rows = [...hosts].map(([host, roles]) => {
    const [total] = [...roles].flatMap(([role, row]) => (role.startsWith("total") ? [row] : []));
    const atOnce = roles.get("artifact")?.maxConcurrent;
    const { failMax, resetS } = roles.get("metadata") ?? {};
    return [
      host,
      ...ROLES.map(role => roles.get(role)?.rates || "unlimited"),
      total?.rates ?? "",
      atOnce === undefined ? "" : String(atOnce),
      failMax === undefined ? "" : `${failMax} / ${resetS} s`,
    ];
  });
  const { aimd, maxInFlight } = policy.ratelimits.resolved;
  const backend = policy.ratelimits.options.backend?.kind ?? "memory";
  const ceiling = Number.isFinite(maxInFlight) ? `at most ${maxInFlight} in flight` : "no ceiling in flight";
  const header = ["host", ...ROLES, "together", "at once", "fails / reset"];
  const head = `backend ${backend}, aimd ${aimd.enabled ? "on" : "off"}, ${ceiling}`;
  const table = formatTable(header, rows);
  if (Math.max(...table.split("\n").map(line => line.length)) <= columns) return `${head}\n\n${table}\n`;
  return `${head}\nThe limits of each host: docstokg policy show\n`;
}
