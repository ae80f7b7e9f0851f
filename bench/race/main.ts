import { loadavg } from "node:os";
import { resolve } from "node:path";
import { installPeers } from "../kit/peers.ts";
import { formatFigures } from "../kit/report.ts";
import { Archive, readIfPresent, writeAtomically } from "./archive.ts";
import { clientsFor, type RaceArguments, readArguments, UsageError } from "./arguments.ts";
import { chartOf } from "./chart.ts";
import { type ClientSpec, clientSpecOf } from "./client-spec.ts";
import { CHART_FILE, documentOf, placed, tableOf } from "./document.ts";
import { figuresOf } from "./figures.ts";
import { machineName, versionsOf } from "./machine.ts";
import type { ClientRun, ScenarioResult } from "./result.ts";
import { runRound } from "./round.ts";
import type { Scenario } from "./scenario.ts";

const here = import.meta.dirname;
const docs = resolve(here, "../../docs");

export async function main(args: readonly string[]): Promise<number> {
  const race = readArguments(args);
  const archive = new Archive(resolve(here, "results"));
  const isKept = !race.isQuick && race.clients === undefined;
  if (race.isRenderOnly && !isKept) throw new UsageError("--render cannot be combined with other options");
  if (!race.isRenderOnly)
    await runAll(race, `npm run bench:race${args.map(arg => ` ${arg}`).join("")}`, isKept, archive);
  if (isKept) writeDocument(race, archive);
  return 0;
}

async function runAll(race: RaceArguments, command: string, isKept: boolean, archive: Archive): Promise<void> {
  installPeers();
  const all = race.scenarios.reduce((count, scenario) => count + clientsFor(race, scenario).length, 0);
  const startMs = performance.now();
  let begun = 0;
  for (const scenario of race.scenarios) {
    const scenarioStartMs = performance.now();
    const [load = 0] = loadavg();
    const runs: ClientRun[] = [];
    for (const spec of clientsFor(race, scenario)) {
      begun += 1;
      runs.push(await runAndReport(`${begun}/${all}`, scenario, spec, race.seed));
    }
    const result: ScenarioResult = {
      version: 1,
      scenario: scenario.id,
      title: scenario.title,
      what: scenario.what,
      isQuick: race.isQuick,
      date: new Date().toISOString(),
      machine: machineName(),
      load,
      versions: versionsOf(),
      seed: race.seed,
      command,
      tookMs: performance.now() - scenarioStartMs,
      runs,
    };
    if (isKept) archive.keep(result);
    else console.log(`## ${scenario.race} ${scenario.title}\n\n${scenario.what}\n\n${tableOf(result)}\n`);
    if (!isKept) console.log(formatFigures(figuresOf(result, scenario)));
  }
  console.error(`${all} rounds in ${seconds(performance.now() - startMs)}`);
}

async function runAndReport(at: string, scenario: Scenario, spec: ClientSpec, seed: string): Promise<ClientRun> {
  const startMs = performance.now();
  // A client that fails must not lose the results of the others.
  const run = await runRound(scenario, spec, seed).catch((error: unknown): ClientRun => {
    console.error(error);
    return { client: spec.id, cannot: error instanceof Error ? error.message : String(error) };
  });
  const name = `[${at}] ${scenario.race} ${scenario.title}: ${clientSpecOf(run.client).name}`;
  const { outcome } = run;
  const summary = outcome
    ? `${seconds(outcome.makespanMs)} (fastest ${seconds(outcome.boundMs)}), ${outcome.rejections ?? 0} rejected, ${outcome.failed} given up`
    : `cannot: ${run.cannot}`;
  console.error(`${name}: ${summary}; took ${seconds(performance.now() - startMs)}`);
  return run;
}

function writeDocument(race: RaceArguments, archive: Archive): void {
  const known = readArguments(race.isQuick ? ["--quick"] : []).scenarios;
  const results = archive.kept(known.map(({ id }) => id));
  const file = resolve(docs, "benchmarks.md");
  writeAtomically(resolve(docs, CHART_FILE), chartOf(results));
  writeAtomically(file, placed(documentOf(results, known), readIfPresent(file)));
  console.error(`wrote docs/benchmarks.md and docs/${CHART_FILE} from ${results.length} of ${known.length} scenarios`);
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
