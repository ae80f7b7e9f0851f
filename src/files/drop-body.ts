import type { Readable } from "node:stream";

/**
 * Ends a response body that is not read to its end, which frees its connection. undici emits an error on such a body, and
 * an error without a listener would end the process.
 */
export function dropBody(body: Readable): void {
  body.on("error", ignored).destroy();
}

function ignored(): void {
  // The caller has decided not to read the body.
}
