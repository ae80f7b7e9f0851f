import { anyWindowOfProcess } from "./any-window.ts";
import { anyWindowAtServer } from "./any-window-at-server.ts";
import { fewAttempts } from "./attempts.ts";
import { boundedWait } from "./bounded-wait.ts";
import { hitsCostNothing } from "./cache-hits.ts";
import { fewProbes, noSendWhileOpen, noStaleResult } from "./circuits.ts";
import { conservation } from "./conservation.ts";
import { noSendInCooldown } from "./cooldowns.ts";
import { costsWithinWindows } from "./costs.ts";
import { trueEstimates } from "./estimates.ts";
import { unobservableEviction } from "./eviction.ts";
import { explainedRefusals } from "./explained-refusals.ts";
import { fairness } from "./fairness.ts";
import { keepsHistory } from "./history.ts";
import { fewInFlight } from "./in-flight.ts";
import { noLateAttempt } from "./late-attempts.ts";
import { noExhaustedBound } from "./late-refusals.ts";
import type { LawMaker } from "./law.ts";
import { liveness } from "./liveness.ts";
import { ownResponses } from "./partitions.ts";
import { resumesSlowly } from "./ramp-up.ts";
import { noRejection } from "./rejection.ts";
import { share } from "./share.ts";
import { slowCallsCoolDown } from "./slow-calls.ts";
import { burstsCountOnce } from "./throttles.ts";
import { nothingWithoutStore } from "./without-store.ts";

/** All laws. Every simulation checks them on every fact. */
export const ALL_LAWS: readonly LawMaker[] = [
  anyWindowAtServer,
  anyWindowOfProcess,
  share,
  nothingWithoutStore,
  keepsHistory,
  costsWithinWindows,
  noRejection,
  conservation,
  fewInFlight,
  noSendInCooldown,
  resumesSlowly,
  noSendWhileOpen,
  fewProbes,
  noStaleResult,
  burstsCountOnce,
  slowCallsCoolDown,
  boundedWait,
  noExhaustedBound,
  trueEstimates,
  explainedRefusals,
  fairness,
  liveness,
  hitsCostNothing,
  ownResponses,
  fewAttempts,
  noLateAttempt,
  unobservableEviction,
];
