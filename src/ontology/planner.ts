import { DownloadError, isDocstokgError, PrivateAddressError, RejectedError } from "../errors.ts";
import { fieldLine } from "../http/headers.ts";
import type { Hub } from "../http/hub.ts";
import type { Environment } from "../policy/environment.ts";
import type { Time } from "../time/time.ts";
import type { TargetFormat } from "./format.ts";
import type { RedirectFollower } from "./redirect-follower.ts";
import {
  ANY_FORMAT,
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
  readonly kind: "fetch";
  readonly source: Source;
  readonly service: string;
  readonly url: string;
  readonly accept: string;
  /** As far as names and services tell. */
  readonly format: TargetFormat | undefined;
  readonly version: string | undefined;
  readonly licence: string | undefined;
  readonly notes: readonly string[];
  /** What a HEAD request brought to light, if one was sent. */
  readonly bytes?: number | undefined;
  readonly etag?: string | undefined;
  readonly lastModified?: string | undefined;
}

/** A source that has no file for us, and why. */
export interface PlanRefusal {
  readonly kind: "refused";
  readonly source: Source;
  readonly reason: RefusalReason;
  readonly message: string;
}

export type PlanItem = PlanEntry | PlanRefusal;

export interface PlannerDeps {
  readonly hub: Hub;
  readonly follower: RedirectFollower;
  readonly env: Environment;
  readonly time: Time;
  readonly signal?: AbortSignal | undefined;
}

/** A registry of some hundred ontologies is half a megabyte. */
const RESPONSE_BYTES_MAX = 16_000_000;
const PARALLEL = 8;
/** A service that is down is not worth more of anybody's time: its sources are told so. */
const MAX_BREAKER_WAIT_MS = 60_000;

/** Asks services where their files are. Nothing is fetched; each question is asked once, whoever needs its answer. */
export class Planner {
  readonly #deps: PlannerDeps;
  readonly #responses = new Map<string, Promise<RegistryResponse>>();

  constructor(deps: PlannerDeps) {
    this.#deps = deps;
  }

  /** In the order of the sources. A source that cannot be had is an item that says why. */
  async plan(
    sources: readonly Source[],
    { probes = true }: { readonly probes?: boolean } = {},
  ): Promise<readonly PlanItem[]> {
    const { time, signal } = this.#deps;
    const pool: TaskPoolOptions = { time, signal, parallel: PARALLEL };
    const items = await runTaskPool(sources, (source, mode) => this.#resolve(source, mode), pool);
    if (!probes) return items;
    return runTaskPool(
      items,
      (item, mode) => (item.kind === "fetch" ? this.#probe(item, mode) : unchanged(item)),
      pool,
    );
  }

  async #resolve(source: Source, mode: WaitMode): Promise<PlanItem> {
    const resolver = RESOLVERS.get(source.resolver);
    if (resolver === undefined) throw new RangeError(`${source.resolver} is no resolver`);
    const { keyVariable } = resolver;
    if (keyVariable !== undefined && !this.#deps.env[keyVariable]) {
      const message = `${resolver.name} needs a key; put it into ${keyVariable}`;
      return { kind: "refused", source, reason: "key", message };
    }
    const finding = await this.#find(source, resolver, mode);
    if (finding.kind === "refused") return { ...finding, source };
    const { service, accept = ANY_FORMAT } = resolver;
    return { ...finding.candidate, kind: "fetch", source, service, accept };
  }

  async #find(source: Source, resolver: OntologyResolver, mode: WaitMode): Promise<OntologyFinding> {
    const question = resolver.requestFor(source);
    if (question === undefined) return resolver.read(source, undefined);
    try {
      return resolver.read(source, await this.#cachedResponse(question, resolver.service, mode));
    } catch (error) {
      this.#deps.signal?.throwIfAborted();
      if (mode === "fail" && error instanceof RejectedError) throw error;
      const finding = resolver.read(source, undefined);
      if (finding.kind === "found") return finding;
      return { ...finding, message: `${finding.message}: ${describeFailure(error)}` };
    }
  }

  /** One request for all who ask the same. A refusal is nobody's answer: whoever comes next asks again. */
  #cachedResponse(question: RegistryRequest, service: string, mode: WaitMode): Promise<RegistryResponse> {
    const known = this.#responses.get(question.url);
    if (known !== undefined) return known;
    const pendingResponse = this.#send(question, service, mode);
    this.#responses.set(question.url, pendingResponse);
    pendingResponse.catch(() => this.#responses.delete(question.url));
    return pendingResponse;
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

  /** Size and validators, where a server tells them without sending the file. */
  async #probe(entry: PlanEntry, mode: WaitMode): Promise<PlanItem> {
    const { follower, signal } = this.#deps;
    const { url, accept, service, notes } = entry;
    try {
      const call = { ...callOptionsFor(service, mode), method: "HEAD", headers: { accept }, signal } as const;
      const { response } = await follower.follow(url, call);
      await response.body.dump();
      const { statusCode, headers } = response;
      if (statusCode !== 200) return { ...entry, notes: [...notes, `HEAD was answered with ${statusCode}`] };
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
      return { ...entry, notes: [...notes, `its size is not known: ${describeFailure(error)}`] };
    }
  }
}

async function unchanged(item: PlanItem): Promise<PlanItem> {
  return item;
}

/** What both modes mean to the hub. */
function callOptionsFor(service: string, mode: WaitMode) {
  const maxWaitMs = mode === "fail" ? 0 : Number.POSITIVE_INFINITY;
  return { role: "metadata", service, maxWaitMs, maxBreakerWaitMs: mode === "fail" ? 0 : MAX_BREAKER_WAIT_MS } as const;
}

async function textOf(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > RESPONSE_BYTES_MAX) throw new DownloadError(`an answer of more than ${RESPONSE_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** In one line, with the cause where fetch has hidden it. */
export function describeFailure(error: unknown): string {
  if (error instanceof PrivateAddressError) {
    return `${error.host} is of a private network; allow_private: true in sources.yaml permits that`;
  }
  if (isDocstokgError(error)) return error.message;
  const { message, cause } = error as Error;
  const { code, message: inner } = (cause ?? {}) as NodeJS.ErrnoException;
  return code ?? (inner || message || String(error));
}
