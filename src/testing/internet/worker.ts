/** The thread of the servers. Its own event loop keeps measurements independent of the load of the client. */
import { parentPort, workerData } from "node:worker_threads";
import { systemTime } from "../../time/system-time.ts";
import { makeIdentity } from "./certificate.ts";
import { makeHostDirectory } from "./host-directory.ts";
import { RequestHandler } from "./request-handler.ts";
import { startServers } from "./servers.ts";
import type { CommandResult, NumberedCommand, ServersReady, WorkerOptions } from "./servers-messages.ts";

const port = parentPort;
if (port === null) throw new Error("worker.ts runs in a worker thread; call startInternet instead");
const { script, ...options }: WorkerOptions = workerData;
const directory = makeHostDirectory(options);
const identity = makeIdentity(directory.hosts, systemTime.wallMs());
const handler = new RequestHandler(directory, systemTime);
for (const step of script) handler.script.start(step);
const servers = await startServers(handler, identity, error => handler.fault(error));

port.on("message", async (command: NumberedCommand) => {
  const response: CommandResult = { id: command.id, result: await execute(command) };
  port.postMessage(response);
});
const ready: ServersReady = {
  tlsPort: servers.tlsPort,
  plainPort: servers.plainPort,
  ca: identity.ca,
  hosts: directory.hosts,
  works: directory.works,
  ontologies: directory.ontologies,
};
port.postMessage(ready);

async function execute(command: NumberedCommand): Promise<CommandResult["result"]> {
  switch (command.kind) {
    case "ledger":
      return handler.ledger();
    case "start":
      return handler.script.start(command.step);
    case "stop":
      handler.script.stop(command.number);
      return undefined;
    case "close":
      await servers.close();
      return undefined;
  }
}
