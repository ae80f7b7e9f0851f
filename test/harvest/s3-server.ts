/**
 * An S3 service for tests: s3rver with additions. MD5 sums are required and checked, multipart uploads can be listed
 * and aborted, the source of a copy is decoded as by AWS, objects are listed in pages with their folders, and requests can
 * be held or refused, or lose their reply.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { TestContext } from "node:test";
import { temporaryFolder } from "../temporary-folder.ts";
import { eventually } from "./kit.ts";

interface S3rver {
  readonly store: { putObject(object: { readonly key: string }): Promise<{ readonly size: number }> };
  callback(): RequestListener;
  configureBuckets(): Promise<unknown>;
}

export interface S3Server {
  /** For a process that uses the server. */
  readonly env: Readonly<Record<string, string>>;
  /** Method and path with query, in the order of arrival. */
  readonly requests: readonly string[];
  /** Keys of visible objects. */
  keys(): readonly string[];
  bytesOf(key: string): Buffer;
  metadataOf(key: string): Readonly<Record<string, string>>;
  /** Ids of multipart uploads that are neither complete nor aborted. */
  uploads(): readonly string[];
  /** Removes these uploads, as another process would. */
  abortAll(): void;
  /** Replaces the bytes of an object. */
  damage(key: string, request: { readonly bytes: string } | "delete"): Promise<void>;
  /** Requests for which this is true get no response. */
  hold: (request: string) => boolean;
  /** Requests for which this is true get a 403, or the error that it returns. The response to HEAD has no body. */
  deny: (request: string) => boolean | S3Refusal;
  /** Requests for which this is true take effect, but their connection breaks before the response. */
  losesReply: (request: string) => boolean;
  /** The age of uploads that a listing reports. */
  uploadAgeMs: number;
  /** How many keys and folders a listing has at most before the next page. */
  pageSize: number;
}

export interface S3Refusal {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const BUCKET = "papers";
const DENIED: S3Refusal = { status: 403, code: "AccessDenied", message: "Access Denied" };
const KEYS = { AWS_ACCESS_KEY_ID: "S3RVER", AWS_SECRET_ACCESS_KEY: "S3RVER" };

/** Starts an S3 server that this process uses, and a folder for files on this machine. */
export async function s3For(t: TestContext): Promise<{ readonly s3: S3Server; readonly folder: string }> {
  const s3 = await startS3(t);
  const folder = temporaryFolder("s3");
  const wanted = { ...s3.env, XDG_CACHE_HOME: folder };
  const before = Object.fromEntries(Object.keys(wanted).map(name => [name, process.env[name]]));
  Object.assign(process.env, wanted);
  t.after(() => {
    for (const [name, value] of Object.entries(before))
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
  });
  return { s3, folder };
}

async function startS3(t: TestContext): Promise<S3Server> {
  const directory = mkdtempSync(join(tmpdir(), "docstokg-s3-"));
  // Not a literal, because the package has no types.
  const name: string = "s3rver";
  const { default: Server } = (await import(name)) as {
    readonly default: new (options: Readonly<Record<string, unknown>>) => S3rver;
  };
  const s3rver = new Server({ directory, silent: true, configureBuckets: [{ name: BUCKET }] });
  await s3rver.configureBuckets();
  const handle = s3rver.callback();
  const bucket = join(directory, BUCKET);
  const uploadsFolder = join(bucket, "._S3rver_uploads");
  const requests: string[] = [];
  const objects = () =>
    readdirSync(bucket, { recursive: true, encoding: "utf8" }).filter(name => name.endsWith("._S3rver_object"));
  const fileOf = (key: string, part: string) => join(bucket, `${key}._S3rver_${part}`);
  // s3rver answers before the last bytes are in the file, and a HEAD request would then tell a shorter length.
  const { store } = s3rver;
  const putObject = store.putObject.bind(store);
  store.putObject = async object => {
    const stored = await putObject(object);
    await eventually(() => statSync(fileOf(object.key, "object")).size === stored.size);
    return stored;
  };
  const server: S3Server = {
    env: { ...KEYS, AWS_REGION: "us-east-1", AWS_ENDPOINT_URL_S3: "" },
    requests,
    keys: () =>
      objects()
        .map(name => name.replace(/\._S3rver_object$/, ""))
        .sort(),
    bytesOf: key => readFileSync(fileOf(key, "object")),
    metadataOf: key => JSON.parse(readFileSync(fileOf(key, "metadata.json"), "utf8")),
    uploads: () => (existsSync(uploadsFolder) ? readdirSync(uploadsFolder) : []),
    abortAll: () => rmSync(uploadsFolder, { recursive: true, force: true }),
    damage: async (key, change) => {
      if (change === "delete")
        for (const part of ["object", "metadata.json", "object.md5"]) rmSync(fileOf(key, part), { force: true });
      else writeFileSync(fileOf(key, "object"), change.bytes);
    },
    hold: () => false,
    deny: () => false,
    losesReply: () => false,
    uploadAgeMs: 0,
    pageSize: 1000,
  };
  const listed = () => {
    const items = server.uploads().map(id => {
      const key = readFileSync(join(uploadsFolder, id, "key"), "utf8");
      const initiated = new Date(Date.now() - server.uploadAgeMs).toISOString();
      return `<Upload><Key>${key}</Key><UploadId>${id}</UploadId><Initiated>${initiated}</Initiated></Upload>`;
    });
    return `<ListMultipartUploadsResult><Bucket>${BUCKET}</Bucket>${items.join("")}</ListMultipartUploadsResult>`;
  };
  const objectPage = (query: URLSearchParams) => {
    const [prefix = "", delimiter] = [query.get("prefix") ?? "", query.get("delimiter")];
    const grouped = (key: string) => {
      const end = delimiter === null ? -1 : key.indexOf(delimiter, prefix.length);
      return end < 0 ? key : key.slice(0, end + 1);
    };
    const names = new Set(
      server
        .keys()
        .filter(key => key.startsWith(prefix))
        .map(grouped),
    );
    const rest = [...names].filter(name => name > (query.get("continuation-token") ?? ""));
    const page = rest.slice(0, server.pageSize);
    const items = page.map(name => {
      if (delimiter !== null && name.endsWith(delimiter))
        return `<CommonPrefixes><Prefix>${name}</Prefix></CommonPrefixes>`;
      const { mtime, size } = statSync(fileOf(name, "object"));
      return `<Contents><Key>${name}</Key><Size>${size}</Size><LastModified>${mtime.toISOString()}</LastModified></Contents>`;
    });
    const isMore = rest.length > page.length;
    const next = isMore ? `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>` : "";
    return `<ListBucketResult><IsTruncated>${isMore}</IsTruncated>${items.join("")}${next}</ListBucketResult>`;
  };
  const front = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://x");
    const line = `${request.method} ${request.url}`;
    requests.push(line);
    if (server.hold(line)) return;
    const denied = server.deny(line);
    if (denied !== false) {
      const { status, code, message, headers } = denied === true ? DENIED : denied;
      response.writeHead(status, headers);
      response.end(`<Error><Code>${code}</Code><Message>${message}</Message></Error>`);
      return;
    }
    if (server.losesReply(line)) {
      response.write = () => true;
      response.end = () => response.destroy();
    }
    const uploadId = searchParams.get("uploadId");
    if (request.method === "GET" && searchParams.has("uploads"))
      response.setHeader("content-type", "application/xml").end(listed());
    else if (request.method === "GET" && searchParams.get("list-type") === "2")
      response.setHeader("content-type", "application/xml").end(objectPage(searchParams));
    else if (uploadId !== null && !server.uploads().includes(uploadId))
      response.writeHead(404).end("<Error><Code>NoSuchUpload</Code></Error>");
    else if (request.method === "DELETE" && uploadId !== null) {
      rmSync(join(uploadsFolder, uploadId), { recursive: true });
      response.writeHead(204).end();
    } else if (request.method === "PUT") await put(request, response, pathname);
    else handle(request, response);
  });
  const put = async (request: IncomingMessage, response: ServerResponse, pathname: string) => {
    const body = Buffer.concat(await request.toArray());
    const isFile = /\.(?:pdf|xml|zip|gz|obo)$/.test(pathname) && request.headers["x-amz-copy-source"] === undefined;
    const md5 = createHash("md5").update(body).digest("base64");
    if (isFile && request.headers["content-md5"] !== md5) {
      response.writeHead(400).end("<Error><Code>BadDigest</Code></Error>");
      return;
    }
    const source = request.headers["x-amz-copy-source"];
    if (typeof source === "string") request.headers["x-amz-copy-source"] = encodeURI(copySourceOf(source));
    handle(Object.assign(Readable.from([body]), requestFields(request)) as unknown as IncomingMessage, response);
  };
  await new Promise<void>(resolve => front.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    front.closeAllConnections();
    front.close();
    rmSync(directory, { recursive: true, force: true });
  });
  const { port } = front.address() as AddressInfo;
  return Object.assign(server, { env: { ...server.env, AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${port}` } });
}

/** Bucket and key as AWS decodes them: a plus is a space. s3rver decodes with decodeURI, which leaves %2B as it is. */
function copySourceOf(header: string): string {
  return decodeURIComponent(header.replaceAll("+", " "));
}

/** What koa reads of a request. */
function requestFields({ method, url, headers, socket, httpVersion }: IncomingMessage) {
  return { method, url, headers, socket, connection: socket, httpVersion };
}
