import { randomBytes } from "node:crypto";
import type { Dispatcher } from "undici";
import { DownloadError } from "../../errors.ts";
import { type HalfFile, judgeArrival, rangeFields, strongValidator } from "../../files/range-decision.ts";
import type { Hub } from "../../http/hub.ts";
import { troubleOf } from "../attempt-failure.ts";
import type { ListedWork, Manifest } from "../manifest/manifest.ts";
import { type Arrival, type KnownSource, type Part, placeOf } from "../manifest/manifest-files.ts";
import type { DoneReason } from "../reason.ts";
import { shownUrl } from "../redacted-url.ts";
import type { Candidate } from "../resolvers/resolver.ts";
import { dropBody, plainHeaders, redirectOf } from "../response-body.ts";
import { challengeInFields } from "./challenge-page.ts";
import { MEDIA_TYPES } from "./file-check.ts";
import { ACCEPT, broughtLess, type FailedFetch, kindOf, refusedBy, tooLarge, wrongWith } from "./file-response.ts";
import type { Shelf } from "./file-store.ts";
import { type Layout, targetOf } from "./layout.ts";
import { PartFile, type ReceivedFile } from "./part-file.ts";

export interface DownloadOptions {
  readonly hub: Pick<Hub, "request">;
  readonly manifest: Manifest;
  readonly shelf: Shelf;
  readonly layout: Layout;
  readonly maxBytes: number;
  /** The longest a request may be held at the gate; whoever would wait longer is told so, and comes again. */
  readonly maxWaitMs: number;
  readonly run: number;
}

/** What to get, for whom. */
export interface Errand {
  readonly work: ListedWork;
  readonly candidate: Candidate;
  readonly resolver: string;
  /** Where the candidate is by now, after redirects. */
  readonly url: string;
  readonly signal: AbortSignal;
}

export type Fetched =
  | { readonly kind: "arrived"; readonly reason: DoneReason; readonly arrival: Arrival; readonly status?: number }
  | { readonly kind: "redirect"; readonly url: string; readonly status: number }
  | FailedFetch;

/** A whole file, body included; a slower one is given up, so that no server holds us for a day with a byte a minute. */
const DEADLINE_MS = 30 * 60_000;

/** Brings files in: streamed to a part, hashed, judged, and only then put in their place and into the manifest. */
export class Downloads {
  readonly #options: DownloadOptions;
  /** Files are put in their places one after the other, so that the same bytes from two addresses become one file. */
  #shelving: Promise<unknown> = Promise.resolve();

  constructor(options: DownloadOptions) {
    this.#options = options;
  }

  /**
   * What has arrived is in the manifest by then. Rejects with what the hub refuses, with the signal's reason, and with a
   * DownloadError when the disk is at fault.
   */
  async fetch(errand: Errand): Promise<Fetched> {
    const { manifest, shelf, run } = this.#options;
    const place = placeOf(errand.url);
    const known = manifest.files.source(place);
    const source = known !== undefined && shelf.has(known.file) ? known : undefined;
    // What came from the very same address a moment ago is not asked for again.
    if (source?.run === run) return this.#sameAgain(errand, source, "duplicate", undefined);
    const part = source === undefined ? manifest.files.part(place) : undefined;
    const half = part === undefined ? undefined : this.#halfOf(part);
    const response = await this.#send(errand, source, half);
    const { statusCode: status, body } = response;
    const headers = plainHeaders(response.headers);
    const onward = redirectOf(status, headers["location"], errand.url);
    if (onward !== undefined || (status === 304 && source !== undefined)) {
      await body.dump();
      return onward !== undefined
        ? { kind: "redirect", url: onward, status }
        : this.#sameAgain(errand, source as KnownSource, "not-modified", status);
    }
    const challenge = challengeInFields(headers);
    if (challenge === undefined && part !== undefined && half !== undefined && (status === 206 || status === 416))
      return this.#goOn(errand, response, part.file, half);
    if (status !== 200 || challenge !== undefined) return refusedBy(response, challenge);
    return this.#receiveAnew(errand, response, headers, part?.file);
  }

  #halfOf({ file, validator }: Part): HalfFile | undefined {
    const bytes = this.#options.shelf.partBytes(file);
    return bytes === 0 || validator === undefined ? undefined : { bytes, validator, totalBytes: undefined };
  }

  /** Finishes what a run that died had begun to put in its place, and removes what is of no use. Answers how many. */
  async recover(): Promise<number> {
    const { manifest, shelf, run } = this.#options;
    let finished = 0;
    for (const { place, work, file, validator, shelving } of manifest.files.parts()) {
      if (shelving !== undefined && (await this.#putAgain(file, shelving))) {
        manifest.finish(run, work, "ok", shelving);
        finished += 1;
      } else if (validator === undefined) await this.#dropPart(place, file);
    }
    await shelf.sweep(new Set(manifest.files.parts().map(({ file }) => file)));
    return finished;
  }

  /** False when the file is not there any more, or another one has taken its place: then it is fetched again. */
  async #putAgain(file: string, shelving: Arrival): Promise<boolean> {
    const { shelf } = this.#options;
    if (shelf.partBytes(file) !== shelving.bytes && !shelf.has(shelving)) return false;
    try {
      await shelf.put(file, shelving.path, shelving.sha256);
      return true;
    } catch (error) {
      if (error instanceof DownloadError) return false;
      throw error;
    }
  }

  #send(
    { url, candidate, signal }: Errand,
    source: KnownSource | undefined,
    half: HalfFile | undefined,
  ): Promise<Dispatcher.ResponseData<unknown>> {
    const headers: Record<string, string> = { accept: ACCEPT[kindOf(candidate)], ...rangeFields(half) };
    if (source?.etag !== undefined) headers["if-none-match"] = source.etag;
    else if (source?.lastModified !== undefined) headers["if-modified-since"] = source.lastModified;
    const { hub, maxWaitMs } = this.#options;
    return hub.request(url, { role: "artifact", maxWaitMs, deadlineMs: DEADLINE_MS, headers, signal });
  }

  async #goOn(
    errand: Errand,
    response: Dispatcher.ResponseData<unknown>,
    file: string,
    half: HalfFile,
  ): Promise<Fetched> {
    const { shelf } = this.#options;
    const { statusCode: status, headers, body } = response;
    // How long the file is was never noted; a server that has our length of it, and vouches for the rest, has said it now.
    const arrival = judgeArrival(status, headers, status === 416 ? { ...half, totalBytes: half.bytes } : half);
    if (arrival.kind === "rest") {
      return this.#receive(errand, response, await resumed(shelf, file), file, arrival.totalBytes);
    }
    await body.dump();
    // Nothing is missing: whoever fetched it died before he could look at it.
    if (arrival.kind === "complete") return this.#complete(errand, response, await resumed(shelf, file), file);
    // It is not as we remember it: from the beginning, then.
    await this.#dropPart(placeOf(errand.url), file);
    return this.fetch(errand);
  }

  async #receiveAnew(
    errand: Errand,
    response: Dispatcher.ResponseData<unknown>,
    headers: Readonly<Record<string, string>>,
    oldFile: string | undefined,
  ): Promise<Fetched> {
    const { manifest, shelf, maxBytes } = this.#options;
    const declared = Number(headers["content-length"] ?? 0);
    if (declared > maxBytes) {
      dropBody(response.body);
      return tooLarge(response.statusCode, declared, maxBytes);
    }
    const file = oldFile ?? `${randomBytes(12).toString("hex")}.part`;
    const validator = strongValidator(response.headers);
    // Known before the first byte is there, so that a part without a name cannot be left behind.
    manifest.files.keepPart({ place: placeOf(errand.url), work: errand.work.id, file, validator, shelving: undefined });
    return this.#receive(errand, response, await onDisk(() => PartFile.create(shelf.partPath(file))), file);
  }

  async #receive(
    errand: Errand,
    response: Dispatcher.ResponseData<unknown>,
    part: PartFile,
    file: string,
    totalBytes?: number,
  ): Promise<Fetched> {
    const { statusCode: status, body } = response;
    const place = placeOf(errand.url);
    const { manifest, maxBytes } = this.#options;
    try {
      for await (const chunk of body) {
        if (part.bytes + chunk.length > maxBytes) {
          await part.close();
          await this.#dropPart(place, file);
          return tooLarge(status, part.bytes + chunk.length, maxBytes);
        }
        await onDisk(() => part.append(chunk));
      }
    } catch (error) {
      await part.close();
      const isOfUse = manifest.files.part(place)?.validator !== undefined && part.bytes > 0;
      if (!isOfUse) await this.#dropPart(place, file);
      if (error instanceof DownloadError || errand.signal.aborted) throw error;
      return { kind: "failed", ...troubleOf(error), status, bytes: part.bytes };
    }
    if (totalBytes !== undefined && part.bytes < totalBytes) {
      await part.close();
      return broughtLess(status, part.bytes, totalBytes);
    }
    return this.#complete(errand, response, part, file);
  }

  async #complete(
    errand: Errand,
    { statusCode: status, headers }: Dispatcher.ResponseData<unknown>,
    part: PartFile,
    file: string,
  ): Promise<Fetched> {
    const place = placeOf(errand.url);
    const received = await onDisk(() => part.finish());
    const trouble = wrongWith(errand.candidate, received);
    if (trouble !== undefined) {
      await this.#dropPart(place, file);
      return { kind: "failed", ...trouble, status, bytes: received.bytes };
    }
    const shelved = this.#shelving.then(() => this.#shelve(errand, received, plainHeaders(headers), file));
    this.#shelving = shelved.catch(() => undefined);
    return { ...(await shelved), status };
  }

  async #shelve(
    { work, url, candidate, resolver }: Errand,
    { sha256, bytes }: ReceivedFile,
    headers: Readonly<Record<string, string>>,
    file: string,
  ): Promise<Fetched & { readonly kind: "arrived" }> {
    const { manifest, shelf, layout } = this.#options;
    const kind = kindOf(candidate);
    const place = placeOf(url);
    const { licence, version } = candidate;
    const origin = { place, url: shownUrl(url), resolver, licence, version };
    const validators = { etag: headers["etag"], lastModified: headers["last-modified"] };
    const twin = manifest.files.file(sha256);
    if (twin !== undefined && shelf.has(twin)) {
      await this.#dropPart(place, file);
      return this.#arrived(work, "duplicate", { ...twin, ...origin, ...validators });
    }
    return onDisk(async () => {
      const path = await shelf.freeName(targetOf(layout, work, kind, sha256), sha256);
      const arrival: Arrival = { sha256, path, bytes, mediaType: MEDIA_TYPES[kind], ...origin, ...validators };
      // From here on the file is not lost: whoever finds this goes on with it.
      manifest.files.keepPart({ place, work: work.id, file, validator: undefined, shelving: arrival });
      await shelf.put(file, path, sha256);
      return this.#arrived(work, "ok", arrival);
    });
  }

  /** Into the manifest, and away with what else was begun for the work. */
  async #arrived(
    { id }: ListedWork,
    reason: DoneReason,
    arrival: Arrival,
  ): Promise<Fetched & { readonly kind: "arrived" }> {
    const { manifest, run } = this.#options;
    for (const { place, file } of manifest.files.partsOf(id)) {
      if (place !== arrival.place) await this.#dropPart(place, file);
    }
    manifest.finish(run, id, reason, arrival);
    return { kind: "arrived", reason, arrival };
  }

  async #sameAgain(
    { work, url, candidate, resolver }: Errand,
    { file, etag, lastModified }: KnownSource,
    reason: DoneReason,
    status: number | undefined,
  ): Promise<Fetched> {
    const { licence, version } = candidate;
    const origin = { place: placeOf(url), url: shownUrl(url), resolver, licence, version };
    const arrived = await this.#arrived(work, reason, { ...file, ...origin, etag, lastModified });
    return status === undefined ? arrived : { ...arrived, status };
  }

  async #dropPart(place: string, file: string): Promise<void> {
    const { manifest, shelf } = this.#options;
    manifest.files.dropPart(place);
    await shelf.dropPart(file);
  }
}

function resumed(shelf: Shelf, file: string): Promise<PartFile> {
  return onDisk(() => PartFile.resume(shelf.partPath(file)));
}

/** What the disk refuses is nobody's fault out there, and the next file would fare no better. */
async function onDisk<Value>(act: () => Promise<Value>): Promise<Value> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof DownloadError) throw error;
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    throw new DownloadError(`a file cannot be written: ${code}`, { cause: error });
  }
}
