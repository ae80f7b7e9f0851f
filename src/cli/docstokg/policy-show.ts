import { loadPolicy } from "../../policy/load.ts";
import { breakerRows, hostBreakerRows, hostPolicyRows, policyRows, serviceRows } from "../../policy/policy-row.ts";
import { ExitCode } from "../exit-code.ts";
import { printJson } from "../output/json.ts";
import { terminalWidth } from "../output/table.ts";
import type { RunCommand } from "../program.ts";
import { policySources } from "./policy-flags.ts";
import { targetOf } from "./policy-target.ts";
import { breakersTable, limitsTable, policySettings, servicesTable, settingsText } from "./policy-text.ts";

/** `docstokg policy show`. */
export const showPolicy: RunCommand = async (_, options, io) => {
  const loaded = await loadPolicy(policySources(options, io));
  const target = typeof options["host"] === "string" ? targetOf(loaded, options["host"], "--host") : undefined;
  const settings = policySettings(loaded);
  const rows = target === undefined ? policyRows(loaded) : hostPolicyRows(loaded, target);
  const breakers = target === undefined ? breakerRows(loaded) : hostBreakerRows(loaded, target);
  const services = target === undefined ? serviceRows(loaded) : [];
  if (options["json"]) {
    printJson(io, { settings, rows, breakers, services });
    return ExitCode.ok;
  }
  const columns = terminalWidth(io.stdout);
  const parts = [settingsText(settings, columns), limitsTable(rows, columns), breakersTable(breakers, columns)];
  if (services.length > 0) parts.push(servicesTable(services, columns));
  io.stdout.write(parts.join("\n"));
  return ExitCode.ok;
};
