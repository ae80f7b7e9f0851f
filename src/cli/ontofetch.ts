import { demo } from "./onto-demo.ts";
import { doctor } from "./onto-doctor.ts";
import { init } from "./onto-init.ts";
import { plan } from "./onto-plan.ts";
import { prune } from "./onto-prune.ts";
import { pull } from "./onto-pull.ts";
import { rl } from "./onto-rl.ts";
import { show } from "./onto-show.ts";
import { validate } from "./onto-validate.ts";
import { type Program, runAsProcess } from "./program.ts";

export const ontofetch: Program = {
  name: "ontofetch",
  summary: "Ontologies, planned, fetched politely, checked and locked.",
  commands: [init, plan, pull, show, validate, prune, doctor, rl, demo],
};

export const main = (process: NodeJS.Process): Promise<void> => runAsProcess(ontofetch, process);
