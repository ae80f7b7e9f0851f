import { fork } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import type { TestContext } from "node:test";

/** What a strict server has counted; `most` in any window of its first rate. */
export interface ServerReport {
  readonly arrived: number;
  readonly rejected: number;
  readonly most: number;
}

export interface ServerProcess {
  readonly origin: string;
  report(): Promise<ServerReport>;
}

/** A server in another process that enforces `rate` by its own clock. */
export async function startServer(t: TestContext, rate: string): Promise<ServerProcess> {
  const child = fork(resolve(import.meta.dirname, "../../test/http/strict-server-process.ts"), [rate]);
  t.after(() => child.kill());
  const [origin] = (await once(child, "message")) as [string];
  return {
    origin,
    report: async () => {
      child.send("report");
      const [seen] = (await once(child, "message")) as [ServerReport];
      return seen;
    },
  };
}
