/** The server of a scenario. */
import type { ServerReport } from "./arrivals.ts";
import { WARM_PATH } from "./paths.ts";
import { Child } from "./processes.ts";
import { ruleOf, type Scenario } from "./scenario.ts";
import { NginxServer, nginxVersion } from "./servers/nginx.ts";

const WARM_REQUESTS = 60;
/** Time for a process to start on a busy machine. */
export const START_MS = 60_000;

export interface RaceServer extends AsyncDisposable {
  readonly origin: string;
  /** What it has seen so far, without the requests that warm it. */
  report(): Promise<ServerReport>;
}

/** Why the server of a scenario cannot be started on this machine; undefined if it can. */
export function whyNoServer({ server }: Scenario): string | undefined {
  return server?.kind === "nginx" && nginxVersion() === undefined ? "no nginx on PATH" : undefined;
}

/** The server, with its code compiled; undefined for a scenario without one. */
export async function openRaceServer(scenario: Scenario): Promise<RaceServer | undefined> {
  if (scenario.isVirtual || scenario.hosts) return undefined;
  const { server, limits } = scenario;
  const opened = server?.kind === "nginx" ? await NginxServer.start(server, limits) : await NodeServer.start(scenario);
  for (let asked = 0; asked < WARM_REQUESTS; asked += 1) {
    const response = await fetch(`${opened.origin}${WARM_PATH}`, { headers: { connection: "close" } });
    await response.arrayBuffer();
  }
  return opened;
}

/** A server of Node, in a process of its own. */
class NodeServer implements RaceServer {
  readonly origin: string;
  readonly #child: Child;

  private constructor(child: Child, port: unknown) {
    this.origin = `http://127.0.0.1:${port}`;
    this.#child = child;
  }

  static async start(scenario: Scenario): Promise<NodeServer> {
    const child =
      scenario.server === undefined
        ? new Child("server.ts", ruleOf(scenario))
        : new Child("servers/middleware.ts", { library: scenario.server.kind, limits: scenario.limits });
    return new NodeServer(child, await child.nextMessage(START_MS));
  }

  async report(): Promise<ServerReport> {
    const report = this.#child.nextMessage(START_MS);
    this.#child.send("report");
    return (await report) as ServerReport;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#child[Symbol.asyncDispose]();
  }
}
