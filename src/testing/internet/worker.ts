/** The thread of the servers: what they measure must not depend on how busy the client's event loop is. */
import { parentPort, workerData } from "node:worker_threads";
import { systemTime } from "../../time/system-time.ts";
import { makeIdentity } from "./certificate.ts";
import { makeHostDirectory } from "./host-directory.ts";
import { RequestHandler } from "./request-handler.ts";
import { startServers } from "./servers.ts";
import type { CommandResult, NumberedCommand, ServersReady, WorkerOptions } from "./servers-messages.ts";

const port = parentPort;
if (port === null) throw new Error("this file is the servers' thread; call startInternet instead");
const { script, ...options }: WorkerOptions = workerData;
const directory = makeHostDirectory(options);
const identity = makeIdentity(directory.hosts, systemTime.wallMs());
const handler = new RequestHandler(directory, systemTime);
for (const act of script) handler.script.start(act);
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
      return handler.script.start(command.act);
    case "stop":
      handler.script.stop(command.number);
      return undefined;
    case "close":
      await servers.close();
      return undefined;
  }
}
