import { learnedYields } from "../../harvest/estimate/learned-yields.ts";
import { ListEstimator } from "../../harvest/estimate/list-estimator.ts";
import type { RunEstimate, ServiceEstimate } from "../../harvest/estimate/run-estimate.ts";
import type { Input } from "../../harvest/inputs/inputs.ts";
import { type Manifest, readManifest } from "../../harvest/manifest/manifest.ts";
import { orderFor } from "../../harvest/resolvers/order.ts";
import { type KeyGain, keyGains } from "../../policy/key-findings.ts";
import { loadPolicy } from "../../policy/load.ts";
import { systemTime } from "../../time/system-time.ts";
import { ExitCode } from "../exit-code.ts";
import { formatDuration } from "../output/duration.ts";
import { formatCount } from "../output/format.ts";
import { printJson } from "../output/json.ts";
import { formatTable, type TableOptions, terminalWidth } from "../output/table.ts";
import type { Flags, Io } from "../program.ts";
import { policySources } from "./policy-flags.ts";
import { type RunSettings, usableResolvers } from "./run-settings.ts";

const SERVICES_SHOWN = 12;
const HINTED_SERVICES = 5;

/** The works of a list, by their state in the manifest. */
interface ListCounts {
  wanted: number;
  present: number;
  failed: number;
  problems: number;
}

/** `docstokg run --dry-run`: prints the calls and the time that a list would need, and sends nothing. */
export async function dryRun(
  list: AsyncIterable<Input>,
  settings: RunSettings,
  flags: Flags,
  io: Io,
): Promise<ExitCode> {
  const policy = await loadPolicy(policySources(flags, io));
  const manifest = await readManifest(settings.manifest, systemTime);
  try {
    const resolvers = usableResolvers(settings, io);
    const estimator = new ListEstimator({
      limits: policy.ratelimits.resolved,
      order: work => orderFor(work, resolvers),
      yields: learnedYields(manifest === undefined ? [] : await manifest.reports.resolverCounts()),
      maxBreakerWaitMs: settings.maxBreakerWaitMs,
    });
    const counts = await addList(list, estimator, manifest, io);
    const estimate = estimator.total;
    const hints = hintsFor(estimate, keyGains(policy));
    if (settings.isJson) printJson(io, { ...counts, ...estimate, hints });
    else io.stdout.write(estimateText(counts, estimate, hints, { columns: terminalWidth(io.stdout) }));
    return counts.problems > 0 ? ExitCode.partial : ExitCode.ok;
  } catch (error) {
    throw manifest === undefined ? error : manifest.errorFrom(error);
  } finally {
    await manifest?.close();
  }
}

async function addList(
  list: AsyncIterable<Input>,
  estimator: ListEstimator,
  manifest: Manifest | undefined,
  io: Io,
): Promise<ListCounts> {
  const counts: ListCounts = { wanted: 0, present: 0, failed: 0, problems: 0 };
  const keys = new Set<string>();
  for await (const input of list) {
    if ("problem" in input) {
      counts.problems += 1;
      io.stderr.write(`${input.problem.source}:${input.problem.line}: ${input.problem.message}\n`);
      continue;
    }
    const { work } = input;
    if (keys.has(work.key)) continue;
    keys.add(work.key);
    const state = await manifest?.works.stateOf(work);
    if (state === "done") counts.present += 1;
    else if (state === "failed") counts.failed += 1;
    else {
      counts.wanted += 1;
      estimator.add(work);
    }
  }
  return counts;
}

function estimateText(
  counts: ListCounts,
  { kinds, ms, services }: RunEstimate,
  hints: readonly string[],
  tableOptions: TableOptions,
): string {
  const byKind = Object.entries(kinds)
    .sort(([, one], [, other]) => other - one)
    .map(([kind, works]) => `${works} ${kind}`);
  const [first] = services;
  const lines = [
    `${formatCount(counts.wanted, "work")} to download${byKind.length === 0 ? "" : `: ${byKind.join(", ")}`}`,
    ...(counts.present > 0 ? [`${counts.present} already downloaded`] : []),
    ...(counts.failed > 0
      ? [`${counts.failed} failed earlier, not retried (docstokg retry --failed retries them)`]
      : []),
    ...(counts.problems > 0 ? [formatCount(counts.problems, "invalid line")] : []),
    ...(first === undefined ? [] : [timeText(ms, first)]),
  ];
  const rows = services
    .slice(0, SERVICES_SHOWN)
    .map(service => [
      `${service.service} ${service.role}`,
      String(service.calls),
      service.limits,
      formatDuration(service.ms),
      service.unsent > 0 ? String(service.unsent) : "",
    ]);
  const header = ["service", "calls", "limit", "time", "not sent"];
  const table = rows.length === 0 ? "" : `\n${formatTable(header, rows, tableOptions)}`;
  const explanation = services.some(({ unsent }) => unsent > 0)
    ? "\nnot sent: these calls would exceed the quota, and the run would not wait for it. docstokg retry sends them later; a larger --patience lets the run wait.\n"
    : "";
  return `${lines.join("\n")}\n${table}${explanation}${hints.map(hint => `\n${hint}`).join("")}${hints.length > 0 ? "\n" : ""}`;
}

function timeText(ms: number, { limits, service, role }: ServiceEstimate): string {
  if (ms === 0) return "The limits permit all requests at once.";
  return `Estimated time: ${formatDuration(ms)}; the slowest limit is ${limits} of ${service} (${role}).`;
}

/** For the slowest services and those with calls that are not sent: the limits that an API key would allow there. */
function hintsFor({ services }: RunEstimate, gains: readonly KeyGain[]): readonly string[] {
  const isSlow = (service: ServiceEstimate, index: number) => index < HINTED_SERVICES || service.unsent > 0;
  const slow = services.filter(isSlow).map(({ service }) => service);
  return gains
    .filter(({ name }) => slow.some(service => service === name || service.startsWith(`${name} with `)))
    .map(({ name, variable, gain }) => `With ${variable} set, ${name} allows: ${gain}.`);
}
