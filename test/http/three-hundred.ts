import { fork } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import type { TestContext } from "node:test";
import { hubFor } from "./kit.ts";

/** What came of it. */
export interface Seen extends Report {
  readonly answered: number;
}

/** What the server saw. */
interface Report {
  readonly arrived: number;
  readonly rejected: number;
  /** In any window of a second, where the server stands. */
  readonly most: number;
}

async function strictServer(t: TestContext, rate: string) {
  const child = fork(resolve(import.meta.dirname, "strict-server.ts"), [rate]);
  t.after(() => child.kill());
  const [origin] = (await once(child, "message")) as [string];
  const report = async () => {
    child.send("report");
    const [answer] = (await once(child, "message")) as [Report];
    return answer;
  };
  return { origin, report };
}

/** The event loop stands still, as a long computation would make it. */
function stall(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

/**
 * 300 fetches at once, over cold connections, to a server that enforces 10/s. On the real clock and with a server of
 * another process: it is about what those do to the distance between two requests.
 */
export async function fetchThreeHundred(t: TestContext, stallMs: number): Promise<Seen> {
  const server = await strictServer(t, "10/SECOND");
  const hub = await hubFor(t, {
    cache: false,
    retry: false,
    limits: { defaults: { metadata: { rates: "10/SECOND", max_delay_ms: 120_000 } } },
  });
  const startedMs = performance.now();
  if (stallMs > 0) setTimeout(stall, 12_000, stallMs);
  const statuses = await Promise.all(
    Array.from({ length: 300 }, async (_, n) => {
      const response = await hub.fetch(`${server.origin}/${n}`);
      await response.arrayBuffer();
      return response.status;
    }),
  );
  const elapsedMs = Math.round(performance.now() - startedMs);
  const report = await server.report();
  t.diagnostic(`${elapsedMs} ms; the fastest schedule takes ${29 * 1025 + stallMs} ms, guard and stall included`);
  const answered = statuses.filter(status => status === 200).length;
  return { answered, ...report };
}
