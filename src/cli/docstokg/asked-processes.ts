import { isDocstokgError } from "../../errors.ts";
import type { RunningProcess } from "../../http/observer.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Flags, Io } from "../program.ts";
import { ACKNOWLEDGED_WITHIN_MS } from "./operator-order.ts";
import { openOperatorConnection, type StoreConnection } from "./store-connection.ts";

export interface AskedProcesses {
  readonly running: readonly RunningProcess[];
  /**
   * Processes whose keys of these hosts and services are unknown: they have more keys than they list, and did not answer,
   * or could not be asked.
   */
  readonly unknown: readonly RunningProcess[];
}

export interface ProcessQuestion {
  /** The hosts and services that the command is about. */
  readonly units: readonly string[];
  /** Whether the process lists a key of these hosts and services. */
  readonly isListed: (process: RunningProcess) => boolean;
}

/**
 * The running processes, with their keys of the hosts and services in question. A process lists only its busiest keys.
 * If it has more keys and does not list these, it is asked to publish them. If this command may not write to the store, or
 * the store fails, no process is asked.
 */
export async function askedProcesses(
  { observer }: StoreConnection,
  { units, isListed }: ProcessQuestion,
  flags: Flags,
  io: Io,
): Promise<AskedProcesses> {
  const running = await observer.processes();
  const mayHaveUnlisted = (process: RunningProcess) => process.snapshot.isPartial === true && !isListed(process);
  if (!running.some(mayHaveUnlisted)) return { running, unknown: [] };
  try {
    await using connection = await openOperatorConnection(flags, io);
    const answers = await connection.operator.ask(units, io.time ?? systemTime, ACKNOWLEDGED_WITHIN_MS);
    const silent = answers.filter(({ effect }) => effect === "silent").map(({ process }) => process);
    return { running: answers.map(({ process }) => process), unknown: silent.filter(mayHaveUnlisted) };
  } catch (error) {
    if (!isDocstokgError(error) || error.code !== "DOCSTOKG_STORE") throw error;
    return { running, unknown: running.filter(mayHaveUnlisted) };
  }
}

/** `unknown for process 4711: …`, for a fact in the output. */
export function unknownText(unknown: readonly { readonly pid: number }[]): string {
  const pids = unknown.map(({ pid }) => pid).join(", ");
  return `unknown for process ${pids}: the key is not among the busiest ones, and only these are published`;
}
