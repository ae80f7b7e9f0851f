import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Server } from "node:http";

/** The server of this process behind a URL: Node names it when it gets a request. */
export async function serverOf(url: string): Promise<Server> {
  const found = Promise.withResolvers<Server>();
  const onRequest = (message: unknown) => found.resolve((message as { readonly server: Server }).server);
  subscribe("http.server.request.start", onRequest);
  const response = await fetch(url);
  unsubscribe("http.server.request.start", onRequest);
  await response.text();
  return found.promise;
}
