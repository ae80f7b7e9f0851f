import { DownloadError, isDocstokgError, PrivateAddressError, RejectedError } from "../errors.ts";
import { fieldLine } from "../http/headers.ts";
import type { Hub } from "../http/hub.ts";
import type { Environment } from "../policy/environment.ts";
import type { Time } from "../time/time.ts";
import type { TargetFormat } from "./format.ts";
import type { RedirectFollower } from "./redirect-follower.ts";
import {
  ANY_FORMAT,
  type ListedVersion,
  type OntologyFinding,
  type OntologyResolver,
  type RefusalReason,
  type RegistryRequest,
  type RegistryResponse,
  type Source,
} from "./resolver.ts";
import { RESOLVERS } from "./resolvers/all.ts";
import { runTaskPool, type TaskPoolOptions, type WaitMode } from "./task-pool.ts";

/** A file that a pull would fetch. */
export interface PlanEntry {
  /** Distinguishes the two types of plan items. */
  readonly kind: "fetch";
  /** The entry of `sources.yaml`. */
  readonly source: Source;
  /** The service whose rate limits apply: the first half of `service:host`. */
  readonly service: string;
  /** Where the download begins; redirects may lead elsewhere. */
  readonly url: string;
  /** The `Accept` header of the download. */
  readonly accept: string;
  /** The format that the service or the file name suggests; undefined if neither does. The bytes decide. */
  readonly format: TargetFormat | undefined;
  /** The version that the service announces; undefined if it announces none. */
  readonly version: string | undefined;
  /** The licence that the service states; undefined if it states none. */
  readonly licence: string | undefined;
  /** Remarks for the reader of the plan, each one line. */
  readonly notes: readonly string[];
  /** `Content-Length` of the HEAD response; undefined if no HEAD was sent or the server did not say. */
  readonly bytes?: number | undefined;
  /** `ETag` of the HEAD response. */
  readonly etag?: string | undefined;
  /** `Last-Modified` of the HEAD response. */
  readonly lastModified?: string | undefined;
}

/** A source for which no file can be fetched. */
export interface PlanRefusal {
  /** Distinguishes the two types of plan items. */
  readonly kind: "refused";
  /** The entry of `sources.yaml`. */
  readonly source: Source;
  /** The reason as a code. */
  readonly reason: RefusalReason;
  /** The reason as a sentence, in one line. */
  readonly message: string;
}

/** One source of a plan. */
export type PlanItem = PlanEntry | PlanRefusal;

export interface PlannerDeps {
  readonly hub: Hub;
  readonly follower: RedirectFollower;
  readonly env: Environment;
  readonly time: Time;
  readonly signal?: AbortSignal | undefined;
}

/** The OBO registry, the largest of these responses, has half a megabyte. */
const RESPONSE_BYTES_MAX = 16_000_000;
const PARALLEL_REQUESTS = 8;
/** A plan waits at most one minute for an open circuit or a cooldown; then the source is refused. */
const MAX_BREAKER_WAIT_MS = 60_000;

/** A registry request that was sent or is being sent. */
interface PendingResponse {
  readonly mode: WaitMode;
  readonly response: Promise<RegistryResponse>;
}

/**
 * Asks services for the URLs of files; downloads no file. Sources that need the same registry request share one
 * response.
 */
export class Planner {
  readonly #deps: PlannerDeps;
  readonly #responses = new Map<string, PendingResponse>();

  constructor(deps: PlannerDeps) {
    this.#deps = deps;
  }

  /** One item for each source, in the same order. */
  async plan(
    sources: readonly Source[],
    { probes = true }: { readonly probes?: boolean } = {},
  ): Promise<readonly PlanItem[]> {
    const { time, signal } = this.#deps;
    const pool: TaskPoolOptions = { time, signal, parallel: PARALLEL_REQUESTS };
    const items = await runTaskPool(sources, (source, mode) => this.#resolve(source, mode), pool);
    if (!probes) return items;
    return runTaskPool(
      items,
      (item, mode) => (item.kind === "fetch" ? this.#probe(item, mode) : unchanged(item)),
      pool,
    );
  }

  /** @throws DownloadError if the service lists no versions or does not respond. */
  async versions(source: Source): Promise<readonly ListedVersion[]> {
    const resolver = resolverOf(source);
    const { versions, service, name } = resolver;
    if (versions === undefined) throw new DownloadError(`resolver ${name} lists no versions`);
    const problem = this.#keyProblem(source, resolver);
    if (problem !== undefined) throw new DownloadError(problem);
    const response = await this.#cachedResponse(versions.requestFor(source), service, "block").catch(error => {
      this.#deps.signal?.throwIfAborted();
      throw new DownloadError(describeError(error), { cause: error });
    });
    const found = versions.read(source, response);
    if (!("kind" in found)) return found;
    throw new DownloadError(found.kind === "refused" ? found.message : "no versions");
  }

  async #resolve(source: Source, mode: WaitMode): Promise<PlanItem> {
    const resolver = resolverOf(source);
    const message = this.#keyProblem(source, resolver);
    if (message !== undefined) return { kind: "refused", source, reason: "key", message };
    const finding = await this.#find(source, resolver, mode);
    if (finding.kind === "refused") return { ...finding, source };
    const { service, accept = ANY_FORMAT } = resolver;
    return { ...finding.candidate, kind: "fetch", source, service, accept };
  }

  /**
   * Why the API key is missing; undefined if it is not. With `base` in extras, the key of that service is configured as an
   * identity.
   */
  #keyProblem({ extras }: Source, { name, keyVariable }: OntologyResolver): string | undefined {
    if (keyVariable === undefined || extras["base"] !== undefined || this.#deps.env[keyVariable]) return undefined;
    return `${name} needs an API key: set ${keyVariable}`;
  }

  async #find(source: Source, resolver: OntologyResolver, mode: WaitMode): Promise<OntologyFinding> {
    const request = resolver.requestFor(source);
    if (request === undefined) return resolver.read(source, undefined);
    try {
      return resolver.read(source, await this.#cachedResponse(request, resolver.service, mode));
    } catch (error) {
      this.#deps.signal?.throwIfAborted();
      if (mode === "fail" && error instanceof RejectedError) throw error;
      const finding = resolver.read(source, undefined);
      if (finding.kind === "found") return finding;
      return { ...finding, message: `${finding.message}: ${describeError(error)}` };
    }
  }

  /**
   * Sends each request once. A failed request is not kept, so the next source sends it again. A caller in mode `block`
   * that has joined a request in mode `fail` sends it again if the hub refused it, because the caller may wait.
   */
  async #cachedResponse(request: RegistryRequest, service: string, mode: WaitMode): Promise<RegistryResponse> {
    for (;;) {
      const pending = this.#responses.get(request.url) ?? this.#startRequest(request, service, mode);
      try {
        return await pending.response;
      } catch (error) {
        if (mode === "fail" || pending.mode === "block" || !(error instanceof RejectedError)) throw error;
      }
    }
  }

  #startRequest(request: RegistryRequest, service: string, mode: WaitMode): PendingResponse {
    const pending: PendingResponse = { mode, response: this.#send(request, service, mode) };
    this.#responses.set(request.url, pending);
    pending.response.catch(() => this.#responses.delete(request.url));
    return pending;
  }

  async #send({ url, accept }: RegistryRequest, service: string, mode: WaitMode): Promise<RegistryResponse> {
    const { hub, signal } = this.#deps;
    const response = await hub.fetch(url, {
      ...callOptionsFor(service, mode),
      headers: { accept },
      signal: signal ?? null,
    });
    return { status: response.status, body: await textOf(response) };
  }

  /** Asks for size and validators with a HEAD request. */
  async #probe(entry: PlanEntry, mode: WaitMode): Promise<PlanItem> {
    const { follower, signal } = this.#deps;
    const { url, accept, service, notes } = entry;
    try {
      const call = { ...callOptionsFor(service, mode), method: "HEAD", headers: { accept }, signal } as const;
      const { response } = await follower.follow(url, call);
      await response.body.dump();
      const { statusCode, headers } = response;
      if (statusCode !== 200)
        return { ...entry, notes: [...notes, `size unknown: HEAD returned status ${statusCode}`] };
      const length = fieldLine(headers["content-length"]) ?? "";
      return {
        ...entry,
        bytes: /^[1-9]\d{0,14}$/.test(length) ? Number(length) : undefined,
        etag: fieldLine(headers["etag"]),
        lastModified: fieldLine(headers["last-modified"]),
      };
    } catch (error) {
      signal?.throwIfAborted();
      if (mode === "fail" && error instanceof RejectedError) throw error;
      return { ...entry, notes: [...notes, `size unknown: ${describeError(error)}`] };
    }
  }
}

/** Whether the service of a source lists versions at all. */
export function listsVersions(source: Source): boolean {
  return resolverOf(source).versions !== undefined;
}

function resolverOf({ resolver: name }: Source): OntologyResolver {
  const resolver = RESOLVERS.get(name);
  if (resolver === undefined) throw new RangeError(`unknown resolver ${name}`);
  return resolver;
}

async function unchanged(item: PlanItem): Promise<PlanItem> {
  return item;
}

function callOptionsFor(service: string, mode: WaitMode) {
  const maxWaitMs = mode === "fail" ? 0 : Number.POSITIVE_INFINITY;
  return { role: "metadata", service, maxWaitMs, maxBreakerWaitMs: mode === "fail" ? 0 : MAX_BREAKER_WAIT_MS } as const;
}

async function textOf(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > RESPONSE_BYTES_MAX) throw new DownloadError(`response larger than ${RESPONSE_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** The reason of an error in one line. `fetch` puts the reason of a network error in `cause`. */
export function describeError(error: unknown): string {
  if (error instanceof PrivateAddressError) {
    return `${error.host} is in a private network; set allow_private: true in sources.yaml to permit it`;
  }
  if (isDocstokgError(error)) return error.message;
  const { message, cause } = error as Error;
  const { code, message: inner } = (cause ?? {}) as NodeJS.ErrnoException;
  return code ?? (inner || message || String(error));
}
