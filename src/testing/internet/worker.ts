/** The thread of the servers: what they measure must not depend on how busy the client's event loop is. */
import { parentPort, workerData } from "node:worker_threads";
import { systemTime } from "../../time/system-time.ts";
import { makeIdentity } from "./certificate.ts";
import { makeWorld } from "./host-directory.ts";
import { Site } from "./request-handler.ts";
import { startServers } from "./servers.ts";
import type { Numbered, Ready, Response, WorkerOptions } from "./servers-messages.ts";

const port = parentPort;
if (port === null) throw new Error("this file is the servers' thread; call startInternet instead");
const { script, ...options }: WorkerOptions = workerData;
const world = makeWorld(options);
const identity = makeIdentity(world.hosts, systemTime.wallMs());
const site = new Site(world, systemTime);
for (const act of script) site.script.play(act);
const servers = await startServers(site, identity, error => site.fault(error));

port.on("message", async (order: Numbered) => {
  const response: Response = { id: order.id, result: await obey(order) };
  port.postMessage(response);
});
const ready: Ready = {
  tlsPort: servers.tlsPort,
  plainPort: servers.plainPort,
  ca: identity.ca,
  hosts: world.hosts,
  works: world.works,
  ontologies: world.ontologies,
};
port.postMessage(ready);

async function obey(order: Numbered): Promise<Response["result"]> {
  switch (order.kind) {
    case "ledger":
      return site.ledger();
    case "play":
      return site.script.play(order.act);
    case "stop":
      site.script.stop(order.number);
      return undefined;
    case "close":
      await servers.close();
      return undefined;
  }
}
