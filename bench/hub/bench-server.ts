import { fork } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";

export interface BenchServer extends Disposable {
  readonly origin: string;
}

/** A server process that runs until it is disposed of. */
export async function openBenchServer(): Promise<BenchServer> {
  // Without the flags of this process: the server needs no `--expose-gc`.
  const child = fork(resolve(import.meta.dirname, "server.ts"), { execArgv: [] });
  const [port] = (await once(child, "message")) as [number];
  return { origin: `http://127.0.0.1:${port}`, [Symbol.dispose]: () => child.disconnect() };
}
