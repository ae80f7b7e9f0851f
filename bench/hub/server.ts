/** The other end, in its own process so that it does not compete for the loop that is measured. Says its port. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { BODY, FIELDS } from "./answer.ts";

const server = createServer((_request, response) => {
  response.writeHead(200, FIELDS);
  response.end(BODY);
});
// A contestant is idle while the others have their turns, and must not pay for new connections after that.
server.keepAliveTimeout = 120_000;
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
process.once("disconnect", () => process.exit());
