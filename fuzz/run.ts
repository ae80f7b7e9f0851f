/**
 * Fuzzes the parsers: `npm run fuzz` changes inputs at random, keeps those that reach new code, and stops at an input
 * that breaks the law of its parser.
 *
 *   TARGET...      only these parsers (all)
 *   --seconds N    time for each parser (10)
 *   --seed N       first number of the random sequence (from the clock)
 *   --threads N    parsers at a time (1)
 *   --list         print the names of the parsers
 *
 * Inputs that reach new code are written to `fuzz/corpus`; the tests run them again. Exit code 1: an input broke a law.
 * It is printed, and added to the corpus. 2: an option is invalid.
 */
import { Worker } from "node:worker_threads";
import { scriptArguments } from "../scripts/script-arguments.ts";
import { readCorpus, writeCorpus } from "./corpus.ts";
import type { FuzzTarget } from "./target.ts";
import { TARGETS } from "./targets.ts";
import type { WorkerReport, WorkerTask } from "./worker.ts";

const INPUT_BYTES_MAX = 16_384;
/** A parser that takes longer for one batch of inputs is taken for one that never returns. */
const SILENCE_MS_MAX = 60_000;

const { values: args, positionals } = scriptArguments({
  allowPositionals: true,
  options: {
    seconds: { type: "string", default: "10" },
    seed: { type: "string", default: String(Date.now() % 2 ** 31) },
    threads: { type: "string", default: "1" },
    list: { type: "boolean", default: false },
  },
});
const unknown = positionals.filter(name => !TARGETS.some(target => target.name === name));
const [seconds, seed, threads] = [args.seconds, args.seed, args.threads].map(Number) as [number, number, number];
if (args.list) console.log(TARGETS.map(({ name }) => name).join("\n"));
else if (unknown.length > 0 || !(seconds > 0 && Number.isInteger(seed) && Number.isInteger(threads) && threads > 0)) {
  console.error(
    `unknown parser or invalid number: ${unknown.join(", ") || process.argv.slice(2).join(" ")}; see --list`,
  );
  process.exitCode = 2;
} else {
  const left = TARGETS.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
  console.log(`seed ${seed}, ${seconds} s for each of ${left.length} parsers`);
  await Promise.all(
    Array.from({ length: threads }, async () => {
      for (let target = left.shift(); target !== undefined; target = left.shift()) await fuzz(target);
    }),
  );
}

async function fuzz(target: FuzzTarget): Promise<void> {
  const current = new SharedArrayBuffer(4 + INPUT_BYTES_MAX);
  const task: WorkerTask = { name: target.name, seed, ms: seconds * 1000, current };
  const worker = new Worker(new URL("worker.ts", import.meta.url), { workerData: task });
  const { promise, resolve } = Promise.withResolvers<void>();
  const inputNow = () => Buffer.from(new Uint8Array(current, 4, new Int32Array(current, 0, 1)[0]));
  const timer = setTimeout(() => {
    broken(target, inputNow(), `no answer for ${SILENCE_MS_MAX / 1000} s`);
    void worker.terminate();
  }, SILENCE_MS_MAX);
  worker.on("message", (report: WorkerReport) => {
    timer.refresh();
    if (report.kind === "broken") broken(target, Buffer.from(report.input), report.message);
    if (report.kind !== "done") return;
    const { runs, corpus, reached } = report;
    console.log(
      `${target.name.padEnd(20)} ${String(runs).padStart(9)} inputs  ${String(corpus).padStart(5)} kept  ${String(reached).padStart(7)} characters of code reached`,
    );
  });
  worker.on("error", error => {
    broken(target, inputNow(), error.stack ?? error.message);
  });
  worker.on("exit", () => {
    clearTimeout(timer);
    resolve();
  });
  await promise;
}

function broken(target: FuzzTarget, input: Buffer, message: string): void {
  console.log(
    `${target.name}: law broken by ${JSON.stringify(input.toString())}\n  ${message.replaceAll("\n", "\n  ")}`,
  );
  writeCorpus(target, [...readCorpus(target), input]);
  process.exitCode = 1;
}
