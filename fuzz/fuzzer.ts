import { setImmediate } from "node:timers/promises";
import type { Random } from "../sim/random.ts";
import { changedInput } from "./changed-input.ts";
import type { Coverage } from "./coverage.ts";
import type { FuzzTarget } from "./target.ts";

/** An input that breaks the law of its target. */
export interface Finding {
  readonly input: Buffer;
  readonly message: string;
}

export interface FuzzerDeps {
  readonly random: Random;
  readonly coverage: Coverage;
  /** Called before each input runs, so that a watcher has the input if the parser never returns. */
  readonly onInput: (input: Buffer) => void;
  /** Processor time of this thread in milliseconds. */
  readonly cpuMs: () => number;
}

/** Reading the coverage takes as long as many inputs, so it is read once for a batch. */
const BATCH = 64;
/** Processor time that one input may take. */
const CPU_MS_MAX = 1000;
const SHRINK_RUNS_MAX = 500;

/** Changes inputs at random and keeps those that reach new code. */
export class Fuzzer {
  readonly corpus: Buffer[];
  /** Inputs that were run. */
  runs = 0;
  readonly #target: FuzzTarget;
  readonly #deps: FuzzerDeps;

  constructor(target: FuzzTarget, corpus: readonly Buffer[], deps: FuzzerDeps) {
    this.#target = target;
    this.#deps = deps;
    this.corpus = [...corpus];
  }

  /** Runs the corpus. Returns the first input that breaks the law. */
  async start(): Promise<Finding | undefined> {
    for (const input of this.corpus) {
      const message = await this.#run(input);
      if (message !== undefined) return { input, message };
    }
    this.#deps.coverage.add();
    return undefined;
  }

  /** Runs a batch of new inputs. Returns an input that breaks the law, as short as it could be made. */
  async step(): Promise<Finding | undefined> {
    const { coverage, random } = this.#deps;
    const inputs = Array.from({ length: BATCH }, () =>
      changedInput(random.pick(this.corpus), random, this.#target.words, random.pick(this.corpus)),
    );
    for (const input of inputs) {
      const message = await this.#run(input);
      if (message !== undefined) return await this.#shrunk({ input, message });
    }
    if (coverage.hasNew()) await this.#keepReaching(inputs);
    await setImmediate();
    return undefined;
  }

  /** The shortest inputs of the corpus that together reach what all of them reach. `coverage` has marked nothing. */
  async smallest(coverage: Coverage): Promise<readonly Buffer[]> {
    const kept: Buffer[] = [];
    for (const input of this.corpus.toSorted((one, other) => one.length - other.length)) {
      await this.#run(input);
      if (coverage.add()) kept.push(input);
    }
    return kept;
  }

  async #keepReaching(inputs: readonly Buffer[]): Promise<void> {
    for (const input of inputs) {
      await this.#run(input);
      if (this.#deps.coverage.add()) this.corpus.push(input);
    }
  }

  /** Removes parts, first large ones, while the law stays broken. */
  async #shrunk(finding: Finding): Promise<Finding> {
    let smallest = finding;
    let left = SHRINK_RUNS_MAX;
    for (let size = finding.input.length >> 1; size > 0; size >>= 1) {
      for (let start = 0; start < smallest.input.length && left > 0; left -= 1) {
        const input = Buffer.concat([smallest.input.subarray(0, start), smallest.input.subarray(start + size)]);
        const message = await this.#run(input);
        if (message === undefined) start += size;
        else smallest = { input, message };
      }
    }
    return smallest;
  }

  /** Why the input breaks the law; undefined if it does not. */
  async #run(input: Buffer): Promise<string | undefined> {
    this.#deps.onInput(input);
    this.runs += 1;
    const startedMs = this.#deps.cpuMs();
    try {
      const later = this.#target.run(input);
      if (later !== undefined) await later;
    } catch (error) {
      return error instanceof Error ? (error.stack ?? error.message) : String(error);
    }
    const tookMs = this.#deps.cpuMs() - startedMs;
    return tookMs > CPU_MS_MAX ? `took ${Math.round(tookMs)} ms of processor time` : undefined;
  }
}
