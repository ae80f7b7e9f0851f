import { DecidedBySettings } from "../policy/decided-by.ts";
import type { LoadedPolicy } from "../policy/load.ts";
import type { Observer, RunningProcess } from "./observer.ts";

/** Cached settings of one policy: finding one takes about 60 µs, and thousands of keys are read each second. */
const SETTINGS_MAX = 16_384;

/** A policy, and the settings behind the limits of its keys. */
export interface UsedPolicy {
  readonly policy: LoadedPolicy;
  readonly settings: DecidedBySettings;
}

/** The policies of running processes. Each is read and loaded once: a policy never changes, it gets another hash. */
export class ProcessPolicies {
  readonly #observer: Observer;
  readonly #ofCommand: UsedPolicy;
  #byHash: ReadonlyMap<string, UsedPolicy> = new Map();

  /** @param ofCommand for processes that have published no policy */
  constructor(observer: Observer, ofCommand: LoadedPolicy) {
    this.#observer = observer;
    this.#ofCommand = usedPolicy(ofCommand);
  }

  /** The policies of these processes. Those of other processes are forgotten. */
  async of(processes: readonly RunningProcess[]): Promise<(process: RunningProcess | undefined) => UsedPolicy> {
    const hashes = [...new Set(processes.map(({ configHash = "" }) => configHash))];
    const found = await Promise.all(
      hashes.map(async hash => {
        const known = this.#byHash.get(hash);
        if (known !== undefined) return [[hash, known] as const];
        const policy = await this.#observer.policy(hash);
        return policy === undefined ? [] : [[hash, usedPolicy(policy)] as const];
      }),
    );
    const byHash = new Map(found.flat());
    this.#byHash = byHash;
    return process => byHash.get(process?.configHash ?? "") ?? this.#ofCommand;
  }
}

function usedPolicy(policy: LoadedPolicy): UsedPolicy {
  return { policy, settings: new DecidedBySettings(policy, SETTINGS_MAX) };
}
