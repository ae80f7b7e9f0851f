import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigError } from "../../errors.ts";
import { workOf } from "../../harvest/identifiers/identifiers.ts";
import { openManifest } from "../../harvest/manifest/manifest.ts";
import { RESOLVERS } from "../../harvest/resolvers/order.ts";
import { RUN_DEFAULTS } from "../../harvest/run.ts";
import type { BreakersOptions } from "../../policy/breaker-schema.ts";
import { loadPolicy } from "../../policy/load.ts";
import type { RatelimitsOptions } from "../../policy/ratelimit-schema.ts";
import { openTelemetryFile } from "../../telemetry/reading/telemetry-file.ts";
import { reportOn } from "../../telemetry/report/run-report.ts";
import type { SimulatedWork } from "../../testing/internet/catalogue.ts";
import { LIMITS } from "../../testing/internet/limits.ts";
import type { ScriptStep } from "../../testing/internet/script-runner.ts";
import { type Internet, startInternet } from "../../testing/internet/start-internet.ts";
import { systemTime } from "../../time/system-time.ts";
import { ExitCode } from "../exit-code.ts";
import type { CliCommand, Io } from "../program.ts";
import { demoText, type FileComparison, reportFile } from "./demo-summary.ts";
import { FastestSchedule } from "./fastest-schedule.ts";
import { runSession } from "./run-session.ts";
import type { RunSettings } from "./run-settings.ts";

const WORKS_DEFAULT = 62;
/** More would take longer than anybody watches. */
const WORKS_MAX = 2000;
/** What befalls two of the publishers: one is down for some seconds, one asks for a pause. */
const SCENARIO: readonly ScriptStep[] = [
  { host: "www.meridian-science.example", act: "outage", fromMs: 2000, untilMs: 8000 },
  { host: "journals.harbourpress.example", act: "throttle", retryAfterS: 3, skip: 2, times: 1 },
];
/** Circuits come back sooner than by the shipped numbers, because nobody watches a demo for two minutes. */
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
/** Client and servers share the cores of one machine, and whichever is kept waiting looks like a jitter of the network. */
const GUARD_MS = 150;

/** `docstokg demo`: the main job, against an internet of our own. */
export const demo: CliCommand = {
  name: "demo",
  summary: "watch a run against a simulated internet on this machine; nothing leaves it",
  configure: command => {
    command
      .option("--works <count>", "how many works there are", String(WORKS_DEFAULT))
      .option("--seed <number>", "another internet", "1")
      .option("--keep", "keep the folder with files and manifest")
      .option("--json", "print the summary as JSON");
  },
  run: async (_, options, io) => {
    const works = wholeNumber("--works", options["works"], 1, WORKS_MAX);
    const seed = wholeNumber("--seed", options["seed"], 0, Number.MAX_SAFE_INTEGER);
    const folder = await mkdtemp(join(tmpdir(), "docstokg-demo-"));
    const internet = await startInternet({ seed, works, script: SCENARIO });
    let isKept = options["keep"] === true;
    try {
      return await runDemo({ internet, folder, isKept, isJson: options["json"] === true }, io);
    } catch (error) {
      isKept = false;
      throw error;
    } finally {
      await internet.close();
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
  // What is set for the real internet does not concern this one.
  const env = { DOCSTOKG_MAILTO: "demo@example.org", NO_COLOR: io.env["NO_COLOR"] };
  const demoIo: Io = { ...io, env, onInterrupt: io.onInterrupt };
  const settings: RunSettings = {
    ...RUN_DEFAULTS,
    folder,
    manifest: join(folder, "manifest.sqlite"),
    resolvers: RESOLVERS.filter(({ needs }) => needs.every(variable => variable === "DOCSTOKG_MAILTO")),
    maxBreakerWaitMs: 20_000,
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
    `${internet.works.length} works on a simulated internet of ${internet.hosts.length} hosts, each with the limits that ` +
      "its original documents.\nOne publisher will be down for six seconds, another will ask for a pause.\n\n",
  );
  const outcome = await runSession({
    settings,
    options: {},
    io: demoIo,
    command: "demo",
    hub: { policy, network: internet.network, telemetry: [fastest.listener] },
    feed: async ({ run, tally }) => {
      tally.wanted += run.addWorks(
        internet.works.map(({ ids, title, year }) => ({ ...workOf(ids), title, year })),
      ).pending;
      return true;
    },
  });
  if (outcome.wasInterrupted) return ExitCode.interrupted;
  const delivery = await checkDelivery(internet, settings);
  if (isKept) await writeReport(folder);
  const ledger = await internet.ledger();
  const facts = { outcome, delivery, ledger, bound: fastest.bound(), folder: isKept ? folder : undefined };
  io.stdout.write(demoText(facts, isJson));
  const isSuccess = ledger.rejected === 0 && ledger.blocked === 0 && delivery.missing.length === 0;
  return isSuccess ? ExitCode.ok : ExitCode.partial;
}

/** The shipped limits with a wider guard, where a server of the simulated internet counts. */
function withWiderGuard({ hosts = {}, groups = {} }: RatelimitsOptions): RatelimitsOptions {
  const counted = new Set(LIMITS.flatMap(({ at }) => at.map(hostIn)));
  const wider = { total: { guard_ms: GUARD_MS } };
  const isWide = (guardMs: number | undefined) => (guardMs ?? 0) >= GUARD_MS;
  return {
    hosts: Object.fromEntries(
      Object.entries(hosts).flatMap(([name, { total }]) =>
        total === undefined || isWide(total.guard_ms) || !counted.has(name) ? [] : [[name, wider]],
      ),
    ),
    groups: Object.fromEntries(
      Object.entries(groups).flatMap(([name, { total, members = [] }]) =>
        total === undefined || isWide(total.guard_ms) || !members.some(member => counted.has(hostIn(member)))
          ? []
          : [[name, wider]],
      ),
    ),
  };
}

function hostIn(place: string): string {
  return place.split("/")[0] ?? place;
}

/** The page of charts, beside the files. */
async function writeReport(folder: string): Promise<void> {
  const file = await openTelemetryFile(folder);
  try {
    const [run] = await file.runs();
    if (run !== undefined) await writeFile(reportFile(folder), (await reportOn(file, run.runId)).page());
  } finally {
    file.close();
  }
}

/** What the manifest has, beside what there is: the bytes of each file are compared with those that its server holds. */
async function checkDelivery({ works }: Internet, settings: RunSettings): Promise<FileComparison> {
  const manifest = await openManifest(settings.manifest, systemTime);
  const asked = new Set(settings.resolvers.map(({ name }) => name));
  try {
    const rows = manifest.db.prepare("SELECT key, sha256 FROM works WHERE state = 'done'").all();
    const got = new Map(rows.map(row => [String(row["key"]), String(row["sha256"])]));
    const named = works.map(work => ({ work, key: workOf(work.ids).key }));
    // A copy that only services with keys know of is none for us.
    const isDue = ({ copies }: SimulatedWork) =>
      copies.some(({ isGood, via }) => isGood && via.some(name => asked.has(name)));
    const due = named.filter(({ work }) => isDue(work));
    return {
      due: due.length,
      right: due.filter(({ work, key }) => got.get(key) === work.file.sha256).length,
      missing: due.filter(({ key }) => !got.has(key)).map(({ key }) => key),
    };
  } finally {
    manifest.close();
  }
}

function wholeNumber(flag: string, value: unknown, least: number, most: number): number {
  const number = Number(value);
  if (Number.isSafeInteger(number) && number >= least && number <= most && String(value).trim() !== "") return number;
  const message = `${JSON.stringify(value)} is no whole number from ${least} to ${most}`;
  throw new ConfigError([{ where: flag, path: "", message }]);
}
