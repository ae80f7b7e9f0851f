import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

/** The JSON that `pull-process.ts` prints. */
export interface PullReport {
  readonly outcomes: Readonly<Record<string, string>>;
  /** When the headers of each request were written, by the machine's clock. */
  readonly writesUs: readonly number[];
  /** How often the process lost the shared store. */
  readonly outages: number;
  /** The most memory in use after a collection, of all samples; 0 unless it is measured. */
  readonly liveBytes: number;
}

/** Runs a pull in a new process. Measuring its memory costs much time. */
export async function pullInProcess(
  folder: string,
  network: object,
  { measuresMemory = false } = {},
): Promise<PullReport> {
  const file = join(import.meta.dirname, "pull-process.ts");
  const flags = ["--disable-warning=ExperimentalWarning", ...(measuresMemory ? ["--expose-gc"] : [])];
  const args = [...flags, file, folder, JSON.stringify(network)];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const [output] = await Promise.all([text(child.stdout), once(child, "close")]);
  return JSON.parse(output);
}

async function text(stream: NodeJS.ReadableStream): Promise<string> {
  let all = "";
  for await (const chunk of stream) all += chunk;
  return all;
}
