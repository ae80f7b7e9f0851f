import { anyWindowAtServer, anyWindowOfProcess } from "./any-window.ts";
import { boundedWait, fairness } from "./bounded-wait.ts";
import { hitsCostNothing } from "./cache-hits.ts";
import { fewProbes, noSendWhileOpen, noStaleResult } from "./circuits.ts";
import { conservation, fewInFlight, unobservableEviction } from "./conservation.ts";
import { noSendInCooldown } from "./cooldowns.ts";
import type { LawMaker } from "./law.ts";
import { liveness } from "./liveness.ts";
import { noRejection } from "./rejection.ts";
import { fewAttempts, noLateAttempt } from "./retries.ts";
import { share } from "./share.ts";

/** Every law that each step of every world is judged by. */
export const ALL_LAWS: readonly LawMaker[] = [
  anyWindowAtServer,
  anyWindowOfProcess,
  share,
  noRejection,
  conservation,
  fewInFlight,
  noSendInCooldown,
  noSendWhileOpen,
  fewProbes,
  noStaleResult,
  boundedWait,
  fairness,
  liveness,
  hitsCostNothing,
  fewAttempts,
  noLateAttempt,
  unobservableEviction,
];
