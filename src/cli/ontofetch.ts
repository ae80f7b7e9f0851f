import { demo } from "./ontofetch/demo.ts";
import { doctor } from "./ontofetch/doctor.ts";
import { init } from "./ontofetch/init.ts";
import { plan } from "./ontofetch/plan.ts";
import { prune } from "./ontofetch/prune.ts";
import { pull } from "./ontofetch/pull.ts";
import { rl } from "./ontofetch/rl.ts";
import { show } from "./ontofetch/show.ts";
import { validate } from "./ontofetch/validate.ts";
import { type Program, runAsProcess } from "./program.ts";

export const ontofetch: Program = {
  name: "ontofetch",
  summary: "Ontologies, planned, fetched politely, checked and locked.",
  commands: [init, plan, pull, show, validate, prune, doctor, rl, demo],
};

export const main = (process: NodeJS.Process): Promise<void> => runAsProcess(ontofetch, process);
