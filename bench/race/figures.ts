/** The targets of docstokg and the measured values. */
import { atMost, type Figure } from "../kit/report.ts";
import { clientSpecOf } from "./client-spec.ts";
import type { ClientRun, RunOutcome, ScenarioResult } from "./result.ts";
import type { Promised, Scenario } from "./scenario.ts";

const NEAR = 1.03;
/** Two runs of the same client differ by up to this factor. */
const SAME = 1.01;

interface Measured {
  readonly run: ClientRun;
  readonly outcome: RunOutcome;
}

export function figuresOf(result: ScenarioResult, { race, title, promises }: Scenario): readonly Figure[] {
  const measured = result.runs.flatMap(run => (run.outcome ? [{ run, outcome: run.outcome }] : []));
  const ours = measured.filter(({ run }) => clientSpecOf(run.client).isOurs);
  const peers = measured.filter(({ run }) => !clientSpecOf(run.client).isOurs);
  return ours.flatMap(one => {
    const name = clientSpecOf(one.run.client).name;
    return promises.flatMap(promised => figureOf(`${race} ${title}: ${name}`, promised, one.outcome, peers));
  });
}

function figureOf(what: string, promised: Promised, ours: RunOutcome, peers: readonly Measured[]): readonly Figure[] {
  const { rejections = 0, makespanMs, politeMs, failed } = ours;
  if (promised === "no-rejections") {
    return [atMost(`${what}, rejections`, rejections, 0), atMost(`${what}, given up`, failed, 0)];
  }
  if (promised === "near-optimum")
    return [atMost(`${what}, makespan / optimum of a polite client`, makespanMs / politeMs, NEAR)];
  return [...aheadOf(what, ours, peers)];
}

/**
 * A client is polite if no request was rejected and no call was given up. Each makespan is divided by its own optimum:
 * the one of docstokg includes the guard.
 */
function aheadOf(what: string, ours: RunOutcome, peers: readonly Measured[]): readonly Figure[] {
  if (peers.length === 0) return [];
  const least = Math.min(...peers.map(({ outcome }) => outcome.rejections ?? 0));
  const fewest = atMost(`${what}, rejections, compared with the fewest of another client`, ours.rejections ?? 0, least);
  const polite = peers.filter(({ outcome }) => outcome.rejections === 0 && outcome.failed === 0);
  if (polite.length === 0) return [fewest];
  const fastest = Math.min(...polite.map(({ outcome }) => outcome.makespanMs / outcome.boundMs));
  const slowness = ours.makespanMs / ours.politeMs / fastest;
  return [fewest, atMost(`${what}, slowness / that of the fastest other polite client`, slowness, SAME)];
}
