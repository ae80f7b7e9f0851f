/** Servers that interrupt the download of a file, and the client that resumes it. */
import { createHash, randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { downloadFile, type ResumableDownloadOptions } from "../../src/files/resumable-download.ts";
import { resumeRecordBeside } from "../../src/files/resume-record.ts";
import { type Handler, hubFor, serve } from "../http/kit.ts";
import { temporaryFolder } from "../temporary-folder.ts";

/** The file that the servers of these tests send. */
export const file = randomBytes(300_000);
export const sha256 = createHash("sha256").update(file).digest("hex");

/** Serves the file and supports ranges. */
export function serveFile(
  request: IncomingMessage,
  response: ServerResponse,
  headers = { etag: '"one"' } as object,
): void {
  const [, from] = /^bytes=(\d+)-$/.exec(request.headers["range"] ?? "") ?? [];
  const isSame = request.headers["if-range"] === undefined || request.headers["if-range"] === '"one"';
  if (from === undefined || !isSame) {
    response.writeHead(200, { "content-length": file.length, ...headers }).end(file);
    return;
  }
  if (Number(from) >= file.length) {
    response.writeHead(416, { "content-range": `bytes */${file.length}` }).end();
    return;
  }
  const rest = file.subarray(Number(from));
  response
    .writeHead(206, {
      "content-length": rest.length,
      "content-range": `bytes ${from}-${file.length - 1}/${file.length}`,
      ...headers,
    })
    .end(rest);
}

/** Responses to destroy once the client has written so many bytes. */
const breaks = new Map<number, ServerResponse>();

/** Sends the beginning of the file, and closes the connection after the client has written it. */
export function interrupt(
  response: ServerResponse,
  bytes: number,
  headers: object = { etag: '"one"' },
  from = 0,
): void {
  const range = from > 0 ? { "content-range": `bytes ${from}-${file.length - 1}/${file.length}` } : {};
  response.writeHead(from > 0 ? 206 : 200, { "content-length": file.length - from, ...range, ...headers });
  breaks.set(from + bytes, response);
  response.write(file.subarray(from, from + bytes));
}

export const URL_OF_FILE = "http://127.0.0.1/file";

/** A server with this handler, and `save`, which downloads its file through a hub without retries. */
export async function downloadFor(t: TestContext, handler: Handler, options: Partial<ResumableDownloadOptions> = {}) {
  const server = await serve(t, handler);
  const hub = await hubFor(t, { retry: false, breakers: { defaults: { fail_max: 100 } } });
  const path = options.path ?? join(temporaryFolder("download"), "file.part");
  const save = (more: Partial<ResumableDownloadOptions> = {}) =>
    downloadFile({
      path,
      record: resumeRecordBeside(path, URL_OF_FILE),
      maxBytes: 1_000_000,
      onBytes: bytes => {
        breaks.get(bytes)?.destroy();
        breaks.delete(bytes);
      },
      send: headers => hub.request(`${server.origin}/file`, { role: "artifact", headers }),
      ...options,
      ...more,
    });
  return { server, hub, path, save };
}
