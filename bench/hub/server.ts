/** The server, in its own process so that it does not use the measured event loop. Prints its port. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { BODY, FIELDS } from "./answer.ts";

const server = createServer((_request, response) => {
  response.writeHead(200, FIELDS);
  response.end(BODY);
});
// Connections stay open while the other cases run, so that no case pays for new ones.
server.keepAliveTimeout = 120_000;
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
process.once("disconnect", () => process.exit());
