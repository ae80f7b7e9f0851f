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
import { interruptedDemoText } from "../interrupts.ts";
import { formatCount } from "../output/format.ts";
import { terminalWidth } from "../output/table.ts";
import type { CommandModule, Io } from "../program.ts";
import { wholeNumberFlag } from "../usage-error.ts";
import { demoJson, demoText, reportFile } from "./demo-summary.ts";
import { FastestSchedule } from "./fastest-schedule.ts";
import { compareFiles } from "./file-comparison.ts";
import { RunPage } from "./run-page.ts";
import { runSession } from "./run-session.ts";
import type { RunSettings } from "./run-settings.ts";

const WORKS_DEFAULT = 62;
/** More works take several minutes, because the client and the simulated servers share one machine. */
const WORKS_MAX = 2000;
const SEED_MAX = 0xffff_ffff;
/** One publisher is down for six seconds, another answers 429 with Retry-After. */
const SCENARIO: readonly ScriptStep[] = [
  { host: "www.meridian-science.example", effect: "outage", fromMs: 2000, untilMs: 8000 },
  { host: "journals.harbourpress.example", effect: "throttle", retryAfterS: 3, skip: 2, times: 1 },
];
/** With the dashboard everything lasts longer, so that an operator has time to open the page and act. */
const WATCHED_WORKS = 300;
const WATCHED_SCENARIO: readonly ScriptStep[] = [
  { host: "www.meridian-science.example", effect: "outage", fromMs: 10_000, untilMs: 40_000 },
  { host: "journals.harbourpress.example", effect: "throttle", retryAfterS: 15, skip: 2, times: 1 },
];
/** With the reset timeouts of the shipped policy, which are longer, the demo would last two minutes. */
const RESET_S = 2;
const WATCHED_RESET_S = 15;
/** Client and servers share the cores of one machine: a process that waits for a core looks like network jitter. */
const GUARD_MS = 150;

/** `docstokg demo`: a run against a simulated internet. */
export const demo: CommandModule = {
  configure: command => {
    command
      .option(
        "--works <count>",
        `number of works, 1 to ${WORKS_MAX} (default: ${WORKS_DEFAULT}, with --dashboard ${WATCHED_WORKS})`,
      )
      .option("--seed <number>", `seed of the simulated internet, 0 to ${SEED_MAX}`, "1")
      .option("--dashboard", "serve the live page during the run, and until Ctrl-C after it")
      .option("--keep", "keep the output folder (files, manifest, HTML report)")
      .option("--json", "print the summary as JSON");
  },
  run: async (_, flags, io) => {
    const isWatched = flags["dashboard"] === true;
    const works = wholeNumberFlag(
      "--works",
      flags["works"] ?? (isWatched ? WATCHED_WORKS : WORKS_DEFAULT),
      1,
      WORKS_MAX,
    );
    const seed = wholeNumberFlag("--seed", flags["seed"], 0, SEED_MAX);
    const isKept = flags["keep"] === true;
    // Before the folder is created: an interrupt without a listener ends the process and leaves the folder behind.
    const interrupt = new AbortController();
    const stopListening = io.onInterrupt?.(() => interrupt.abort());
    const folder = await mkdtemp(join(tmpdir(), "docstokg-demo-"));
    let isSummarized = false;
    try {
      const internet = await startInternet({ seed, works, script: isWatched ? WATCHED_SCENARIO : SCENARIO });
      try {
        if (interrupt.signal.aborted) return ExitCode.interrupted;
        const options = { internet, folder, isKept, isWatched, isJson: flags["json"] === true };
        const exitCode = await runDemo({ ...options, signal: interrupt.signal }, io);
        isSummarized = exitCode !== ExitCode.interrupted;
        return exitCode;
      } finally {
        await internet.close();
      }
    } finally {
      if (!isKept) await rm(folder, { recursive: true, force: true });
      stopListening?.();
      const isInterrupted = interrupt.signal.aborted && !isSummarized;
      if (isInterrupted) io.stderr.write(`${interruptedDemoText(isKept)}\n`);
      if (isKept && !isSummarized) io.stderr.write(`The output folder ${folder} was kept.\n`);
    }
  },
};

interface DemoOptions {
  readonly internet: Internet;
  readonly folder: string;
  readonly isKept: boolean;
  /** The live page is served. */
  readonly isWatched: boolean;
  readonly isJson: boolean;
  /** Aborted by an interrupt. */
  readonly signal: AbortSignal;
}

async function runDemo(options: DemoOptions, io: Io): Promise<ExitCode> {
  const { internet, folder, isKept, isWatched, isJson, signal } = options;
  // The environment configures requests to the real internet, so the demo ignores it.
  const env = { DOCSTOKG_MAILTO: "demo@example.org", NO_COLOR: io.env["NO_COLOR"] };
  // Not by a spread, which would read the getter `stdin` and open stdin.
  const demoIo: Io = Object.create(io, { env: { value: env } });
  const settings: RunSettings = {
    ...RUN_DEFAULTS,
    folder,
    manifest: join(folder, "manifest.sqlite"),
    resolvers: RESOLVERS.filter(({ needs }) => needs.every(variable => variable === "DOCSTOKG_MAILTO")),
    maxBreakerWaitMs: isWatched ? 90_000 : 20_000,
    metadata: undefined,
    mailto: undefined,
    allowPrivate: false,
    connectTo: [],
    ca: undefined,
    cache: "memory",
    keepsTelemetry: true,
    metricsPort: undefined,
    dashboardPort: undefined,
    isQuiet: false,
    isJson,
  };
  const { ratelimits } = await loadPolicy({ env });
  const breakers = breakersFor(isWatched ? WATCHED_RESET_S : RESET_S);
  const policy = { ratelimits: withWiderGuard(ratelimits.options), breakers };
  const fastest = new FastestSchedule(ratelimits.resolved, systemTime);
  io.stderr.write(
    `${formatCount(internet.works.length, "work")} on a simulated internet of ${internet.hosts.length} hosts. They enforce the ` +
      "rate limits that the real services document.\n" +
      `One publisher is down for ${isWatched ? "30" : "six"} seconds, another answers 429 with Retry-After.\n\n`,
  );
  await using page = isWatched ? await RunPage.open(0) : undefined;
  const outcome = await runSession({
    settings,
    flags: {},
    io: demoIo,
    command: "demo",
    signal,
    page,
    hub: { policy, network: internet.network, telemetry: [fastest.listener] },
    listWorks: async ({ run, counts }) => {
      const works = internet.works.map(({ ids, title, year }) => workOf(ids, { title, year }));
      counts.wanted += (await run.addWorks(works)).pending;
      return true;
    },
  });
  if (outcome.wasInterrupted) return ExitCode.interrupted;
  const comparison = await compareFiles(internet.works, settings);
  if (isKept) await writeReport(folder);
  const ledger = await internet.ledger();
  const facts = { outcome, comparison, ledger, bound: fastest.bound(), folder: isKept ? folder : undefined };
  io.stdout.write(isJson ? demoJson(facts) : demoText(facts, terminalWidth(io.stdout)));
  await page?.waitForInterrupt(io);
  const isSuccess = ledger.rejected === 0 && ledger.blocked === 0 && comparison.matching === comparison.expected;
  return isSuccess ? ExitCode.ok : ExitCode.partial;
}

function breakersFor(resetS: number): BreakersOptions {
  const circuit = { reset_timeout_s: resetS };
  return {
    defaults: { roles: { metadata: circuit, landing: circuit, artifact: circuit } },
    advanced: { rolling_window: { cooldown_s: resetS + 1 } },
  };
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
