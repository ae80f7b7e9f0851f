import type { Dispatcher } from "undici";
import type { HeaderFields } from "../../core/cache/stored-fields.ts";
import { robotsFor } from "../../core/text/robots.ts";
import type { Time } from "../../time/time.ts";
import { decodedText } from "../decoded-text.ts";
import type { Hub } from "../hub.ts";
import { withRewrittenHead } from "../stages/rewritten-head.ts";
import type { OutgoingRequest, ResponseSink } from "../stages/stage.ts";
import { type KeptRobots, ROBOTS_KEPT_MS, robotsToKeep } from "./kept-robots.ts";

export interface RobotsReaderDeps {
  readonly time: Time;
  /** The hub itself: robots.txt is requested under the limits and circuits of its host, and cached like any response. */
  readonly request: Hub["request"];
  /** The first word of the User-Agent. */
  readonly product: () => string;
  /** Whether the policy lists the host, in a file, the environment or a flag. */
  readonly isListed: (host: string, path: string) => boolean;
  /** Called with each Crawl-delay that was read, in seconds. */
  readonly onDelay: (host: string, delayS: number) => void;
}

/** A robots.txt that is being read. */
export interface RobotsReading {
  /** Never rejects. */
  readonly done: Promise<void>;
  /** When it has ended at the latest, in monotonic microseconds. */
  readonly endsByUs: number;
}

type ObservedRequest = Pick<OutgoingRequest, "method" | "origin" | "host">;

/** RFC 9309 requires crawlers to read at least 500 KiB. */
const ROBOTS_BYTES_MAX = 512_000;
const REDIRECTS_MAX = 5;
/** Requests to the host wait for its robots.txt, so a slow one must not hold them for long. */
const DEADLINE_MS = 10_000;
/** Bounds the memory for a crawler that calls very many origins. The oldest is deleted, and read again if needed. */
const ORIGINS_MAX = 4096;

/**
 * Reads the robots.txt of each origin once, before the first landing or artifact request to a host that the policy does
 * not list. A file that is missing, fails or takes longer than DEADLINE_MS sets no delay.
 */
export class RobotsReader {
  readonly #deps: RobotsReaderDeps;
  /** By origin; undefined once robots.txt was read. */
  readonly #origins = new Map<string, RobotsReading | undefined>();
  #kept: KeptRobots | undefined;
  #onRead: (host: string) => void = () => undefined;

  constructor(deps: RobotsReaderDeps) {
    this.#deps = deps;
  }

  /**
   * From now on a file that is kept there is not requested, and a file that was requested is saved there.
   * @param onRead called when no request to the host has to wait for this file any more
   */
  keepIn(kept: KeptRobots, onRead: (host: string) => void = () => undefined): void {
    this.#kept = kept;
    this.#onRead = onRead;
  }

  /**
   * Whether robots.txt applies to a request. The role metadata is for APIs, whose limits are documented; robots.txt
   * itself is requested with it too.
   */
  applies({ role, host, path, call }: Pick<OutgoingRequest, "role" | "host" | "path" | "call">): boolean {
    return role !== "metadata" && call.service === undefined && !this.#deps.isListed(host, path);
  }

  /** Reads the robots.txt of this origin. Undefined if it was read before. */
  read({ origin, host }: Pick<OutgoingRequest, "origin" | "host">): RobotsReading | undefined {
    if (this.#origins.has(origin)) return this.#origins.get(origin);
    const done = this.#load(origin, host)
      // If robots.txt cannot be read, no delay is set.
      .catch(() => undefined)
      .then(() => {
        this.#remember(origin, undefined);
        this.#onRead(host);
      });
    const reading = { done, endsByUs: this.#deps.time.monotonicUs() + DEADLINE_MS * 1000 };
    this.#remember(origin, reading);
    return reading;
  }

  /**
   * A sink for a caller that requests robots.txt itself: it also reads the text, so that it is not requested twice. A
   * response without the file (to a HEAD, or another status than 200) is not read.
   */
  observe({ method, origin, host }: ObservedRequest, sink: ResponseSink): ResponseSink {
    if (method !== "GET" || this.#origins.has(origin)) return sink;
    let file: FileCollector | undefined;
    return {
      ...withRewrittenHead(sink, head => {
        if (head.status === 200) file = new FileCollector(head.headers);
        return head;
      }),
      data: chunk => {
        file?.add(chunk);
        sink.data(chunk);
      },
      ended: (trailers, rawTrailers) => {
        const text = file?.text();
        if (text !== undefined) {
          this.#learn(host, 200, text);
          this.#remember(origin, undefined);
        }
        sink.ended(trailers, rawTrailers);
      },
    };
  }

  async #load(origin: string, host: string): Promise<void> {
    // If the files cannot be read or written, robots.txt is requested as without them.
    const found = await this.#kept?.find(origin).catch(() => undefined);
    if (found === undefined || found.ageMs >= ROBOTS_KEPT_MS) await this.#fetch(origin, host);
    else this.#learn(host, found.status, found.text);
  }

  async #fetch(origin: string, host: string): Promise<void> {
    const { statusCode, headers, body } = await this.#deps.request(`${origin}/robots.txt`, {
      role: "metadata",
      headers: { "accept-encoding": "identity" },
      maxRedirections: REDIRECTS_MAX,
      maxWaitMs: DEADLINE_MS,
      deadlineMs: DEADLINE_MS,
    });
    const text = await beginningOf(body, headers);
    if (text === undefined) return;
    this.#learn(host, statusCode, text);
    const file = robotsToKeep(statusCode, text);
    // The requests that wait for the delay need not wait until the file is saved.
    if (file !== undefined) this.#kept?.save(origin, file).catch(() => undefined);
  }

  #learn(host: string, status: number, text: string): void {
    const { crawlDelayS } = robotsFor(this.#deps.product(), status, text);
    if (crawlDelayS !== undefined) this.#deps.onDelay(host, crawlDelayS);
  }

  #remember(origin: string, reading: RobotsReading | undefined): void {
    for (const oldest of this.#origins.keys()) {
      if (this.#origins.size < ORIGINS_MAX || this.#origins.has(origin)) break;
      this.#origins.delete(oldest);
    }
    this.#origins.set(origin, reading);
  }
}

/** The first bytes of a file. A server may compress it, although `identity` was requested. */
class FileCollector {
  readonly #headers: HeaderFields;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(headers: HeaderFields) {
    this.#headers = headers;
  }

  get isFull(): boolean {
    return this.#bytes >= ROBOTS_BYTES_MAX;
  }

  add(chunk: Buffer): void {
    if (this.isFull) return;
    // A copy, because the caller may change or transfer the bytes.
    this.#chunks.push(Buffer.from(chunk));
    this.#bytes += chunk.length;
  }

  /** Undefined if it cannot be decoded. */
  text(): string | undefined {
    return decodedText(Buffer.concat(this.#chunks).subarray(0, ROBOTS_BYTES_MAX), this.#headers, ROBOTS_BYTES_MAX);
  }
}

async function beginningOf(body: Dispatcher.ResponseData["body"], headers: HeaderFields): Promise<string | undefined> {
  const collector = new FileCollector(headers);
  // Leaving the loop destroys the rest of the body.
  for await (const chunk of body) {
    collector.add(chunk as Buffer);
    if (collector.isFull) break;
  }
  return collector.text();
}
