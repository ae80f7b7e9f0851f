import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { workOf } from "../../harvest/identifiers/identifiers.ts";
import { RESOLVERS } from "../../harvest/resolvers/order.ts";
import { RUN_DEFAULTS } from "../../harvest/run.ts";
import type { BreakersOptions } from "../../policy/breaker-schema.ts";
import { loadPolicy } from "../../policy/load.ts";
import { memberList } from "../../policy/member.ts";
import type { RatelimitsOptions } from "../../policy/ratelimit-schema.ts";
import { openTelemetryFile } from "../../telemetry/reading/telemetry-file.ts";
import { reportOn } from "../../telemetry/report/run-report.ts";
import { LIMITS } from "../../testing/internet/limits.ts";
import type { ScriptStep } from "../../testing/internet/script-step.ts";
import { type Internet, startInternet } from "../../testing/internet/start-internet.ts";
import { systemTime } from "../../time/system-time.ts";
import { ExitCode } from "../exit-code.ts";
import { terminalWidth } from "../output/table.ts";
import type { CommandModule, Io } from "../program.ts";
import { wholeNumberFlag } from "../usage-error.ts";
import { demoJson, demoText, reportFile } from "./demo-summary.ts";
import { FastestSchedule } from "./fastest-schedule.ts";
import { compareFiles } from "./file-comparison.ts";
import { runSession } from "./run-session.ts";
import type { RunSettings } from "./run-settings.ts";

const WORKS_DEFAULT = 62;
/** More works take several minutes, because the client and the simulated servers share one machine. */
const WORKS_MAX = 2000;
/** One publisher is down for six seconds, another answers 429 with Retry-After. */
const SCENARIO: readonly ScriptStep[] = [
  { host: "www.meridian-science.example", effect: "outage", fromMs: 2000, untilMs: 8000 },
  { host: "journals.harbourpress.example", effect: "throttle", retryAfterS: 3, skip: 2, times: 1 },
];
/** Shorter open times than in the shipped file, with which the demo would last two minutes. */
const BREAKERS: BreakersOptions = {
  defaults: {
    roles: {
      metadata: { reset_timeout_s: 2 },
      landing: { reset_timeout_s: 2 },
      artifact: { reset_timeout_s: 2 },
    },
  },
  advanced: { rolling_window: { cooldown_s: 3 } },
};
/** Client and servers share the cores of one machine: a process that waits for a core looks like network jitter. */
const GUARD_MS = 150;

/** `docstokg demo`: a run against a simulated internet. */
export const demo: CommandModule = {
  configure: command => {
    command
      .option("--works <count>", "number of works", String(WORKS_DEFAULT))
      .option("--seed <number>", "seed of the simulated internet", "1")
      .option("--keep", "keep the output folder (files, manifest, HTML report)")
      .option("--json", "print the summary as JSON");
  },
  run: async (_, flags, io) => {
    const works = wholeNumberFlag("--works", flags["works"], 1, WORKS_MAX);
    const seed = wholeNumberFlag("--seed", flags["seed"], 0);
    const folder = await mkdtemp(join(tmpdir(), "docstokg-demo-"));
    const isKept = flags["keep"] === true;
    try {
      const internet = await startInternet({ seed, works, script: SCENARIO });
      try {
        return await runDemo({ internet, folder, isKept, isJson: flags["json"] === true }, io);
      } finally {
        await internet.close();
      }
    } catch (error) {
      if (isKept) io.stderr.write(`The output folder ${folder} was kept.\n`);
      throw error;
    } finally {
      if (!isKept) await rm(folder, { recursive: true, force: true });
    }
  },
};

interface DemoOptions {
  readonly internet: Internet;
  readonly folder: string;
  readonly isKept: boolean;
  readonly isJson: boolean;
}

async function runDemo({ internet, folder, isKept, isJson }: DemoOptions, io: Io): Promise<ExitCode> {
  // The environment configures requests to the real internet, so the demo ignores it.
  const env = { DOCSTOKG_MAILTO: "demo@example.org", NO_COLOR: io.env["NO_COLOR"] };
  // Not by a spread, which would read the getter `stdin` and open stdin.
  const demoIo: Io = Object.create(io, { env: { value: env } });
  const settings: RunSettings = {
    ...RUN_DEFAULTS,
    folder,
    manifest: join(folder, "manifest.sqlite"),
    resolvers: RESOLVERS.filter(({ needs }) => needs.every(variable => variable === "DOCSTOKG_MAILTO")),
    maxBreakerWaitMs: 20_000,
    metadata: undefined,
    mailto: undefined,
    allowPrivate: false,
    connectTo: [],
    ca: undefined,
    cache: "memory",
    keepsTelemetry: true,
    metricsPort: undefined,
    isQuiet: false,
    isJson,
  };
  const { ratelimits } = await loadPolicy({ env });
  const policy = { ratelimits: withWiderGuard(ratelimits.options), breakers: BREAKERS };
  const fastest = new FastestSchedule(ratelimits.resolved, systemTime);
  io.stderr.write(
    `${internet.works.length} works on a simulated internet of ${internet.hosts.length} hosts; each host enforces the ` +
      "rate limits that the real service documents.\n" +
      "One publisher is down for six seconds, another answers 429 with Retry-After.\n\n",
  );
  const outcome = await runSession({
    settings,
    flags: {},
    io: demoIo,
    command: "demo",
    hub: { policy, network: internet.network, telemetry: [fastest.listener] },
    feed: async ({ run, tally }) => {
      const works = internet.works.map(({ ids, title, year }) => workOf(ids, { title, year }));
      tally.wanted += (await run.addWorks(works)).pending;
      return true;
    },
  });
  if (outcome.wasInterrupted) return ExitCode.interrupted;
  const comparison = await compareFiles(internet.works, settings);
  if (isKept) await writeReport(folder);
  const ledger = await internet.ledger();
  const facts = { outcome, comparison, ledger, bound: fastest.bound(), folder: isKept ? folder : undefined };
  io.stdout.write(isJson ? demoJson(facts) : demoText(facts, terminalWidth(io.stdout)));
  const isSuccess = ledger.rejected === 0 && ledger.blocked === 0 && comparison.matching === comparison.expected;
  return isSuccess ? ExitCode.ok : ExitCode.partial;
}

/** Overrides that widen the guard of every host and service whose requests a simulated server counts. */
function withWiderGuard({ hosts = {}, services = {} }: RatelimitsOptions): RatelimitsOptions {
  const counted = new Set(LIMITS.flatMap(({ at }) => at.map(hostIn)));
  const wider = { total: { guard_ms: GUARD_MS } };
  const isWide = (guardMs: number | undefined) => (guardMs ?? 0) >= GUARD_MS;
  return {
    hosts: Object.fromEntries(
      Object.entries(hosts).flatMap(([name, { total }]) =>
        total === undefined || isWide(total.guard_ms) || !counted.has(name) ? [] : [[name, wider]],
      ),
    ),
    services: Object.fromEntries(
      Object.entries(services).flatMap(([name, { total, members }]) =>
        total === undefined ||
        isWide(total.guard_ms) ||
        !memberList(members).some(member => counted.has(hostIn(member)))
          ? []
          : [[name, wider]],
      ),
    ),
  };
}

/** The host of `host` or `host/path`. */
function hostIn(member: string): string {
  return member.split("/")[0] ?? member;
}

/** Writes the HTML report beside the files. */
async function writeReport(folder: string): Promise<void> {
  const file = await openTelemetryFile(folder);
  try {
    const [run] = await file.runs();
    if (run !== undefined) await writeFile(reportFile(folder), (await reportOn(file, run.runId)).page());
  } finally {
    file.close();
  }
}
