import type { DatabaseSync, StatementSync } from "node:sqlite";
import { crc32 } from "node:zlib";
import { type CacheStats, type FoundResponse, type StoredResponse, VARIANTS_MAX, variantId } from "./cache-store.ts";
import type { CacheWrite } from "./cache-write.ts";

/** The time of use is written at most once per minute and entry: eviction needs no more precision. */
const USE_WRITE_INTERVAL_MS = 60_000;
/** Bounds the memory for times of use while the file cannot be written. */
const PENDING_USES_MAX = 1000;
/** One transaction evicts at most this many entries and bytes, so that eviction never blocks the event loop for long. */
const EVICTED_AT_ONCE = 256;
const EVICTED_BYTES_AT_ONCE = 4 * 2 ** 20;
/**
 * The order of the entries of a URL, most recently stored first. After the wall clock was set back, an entry with a time in
 * the future is older than one of now.
 */
const LATEST_FIRST = "received_ms > :nowMs, received_ms DESC, id DESC";

/** The row id of a body, and its checksum. */
export interface BodyKey {
  readonly id: number;
  readonly crc: number;
}

/** An open cache file. Every method may throw an error of SQLite, and leaves no transaction open. */
export class CacheFile {
  readonly #db: DatabaseSync;
  readonly #maxBytes: number;
  /** Times of use by entry, written with the next transaction. */
  readonly #usedMs = new Map<number, number>();
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #heads: StatementSync;
  readonly #body: StatementSync;
  readonly #totals: StatementSync;
  readonly #insert: StatementSync;
  readonly #insertBody: StatementSync;
  readonly #renew: StatementSync;
  readonly #updateUse: StatementSync;
  readonly #remove: StatementSync;
  readonly #removeVariant: StatementSync;
  readonly #exists: StatementSync;
  readonly #removeSurplus: StatementSync;
  readonly #leastUsed: StatementSync;
  readonly #removeOne: StatementSync;
  readonly #limitUses: StatementSync;

  constructor(db: DatabaseSync, maxBytes: number) {
    this.#db = db;
    this.#maxBytes = maxBytes;
    // A transaction that begins as a reader fails to upgrade when another process has written in the meantime.
    this.#begin = db.prepare("BEGIN IMMEDIATE");
    this.#commit = db.prepare("COMMIT");
    this.#heads = db.prepare(
      `SELECT id, head, requested_ms, received_ms, body_bytes, body_crc, used_ms FROM responses
       WHERE url = :url ORDER BY ${LATEST_FIRST}`,
    );
    this.#body = db.prepare("SELECT body FROM bodies WHERE id = ?");
    this.#totals = db.prepare("SELECT entries, bytes FROM totals");
    this.#insert = db.prepare(
      `INSERT INTO responses (url, variant, head, status, requested_ms, received_ms, body_bytes, body_crc, bytes,
         used_ms)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#insertBody = db.prepare("INSERT INTO bodies (id, body) VALUES (?, ?)");
    this.#renew = db.prepare(
      `UPDATE responses SET variant = ?, head = ?, status = ?, requested_ms = ?, received_ms = ?,
         bytes = body_bytes + ?, used_ms = ?
       WHERE url = ? AND variant = ? AND requested_ms = ? AND received_ms = ? AND status = ?`,
    );
    this.#updateUse = db.prepare("UPDATE responses SET used_ms = ? WHERE id = ?");
    this.#remove = db.prepare("DELETE FROM responses WHERE url = ?");
    this.#removeVariant = db.prepare("DELETE FROM responses WHERE url = ? AND variant = ?");
    this.#exists = db.prepare(
      "SELECT 1 FROM responses WHERE url = ? AND variant = ? AND requested_ms = ? AND received_ms = ? AND status = ?",
    );
    this.#removeSurplus = db.prepare(
      `DELETE FROM responses WHERE id IN
         (SELECT id FROM responses WHERE url = :url ORDER BY ${LATEST_FIRST} LIMIT -1 OFFSET ${VARIANTS_MAX})`,
    );
    this.#leastUsed = db.prepare(`SELECT id, bytes FROM responses ORDER BY used_ms, id LIMIT ${EVICTED_AT_ONCE}`);
    this.#removeOne = db.prepare("DELETE FROM responses WHERE id = ?");
    this.#limitUses = db.prepare(
      `UPDATE responses SET used_ms = :nowMs WHERE id IN
         (SELECT id FROM responses WHERE used_ms > :nowMs ORDER BY used_ms, id LIMIT ${EVICTED_AT_ONCE})`,
    );
  }

  /** @param bodyOf reads the body of an entry, when `body()` of a found response is called */
  find(url: string, nowMs: number, bodyOf: (body: BodyKey) => Buffer | undefined): readonly FoundResponse[] {
    const rows = this.#heads.all({ url, nowMs });
    if (rows.length === 0) return NONE;
    return rows.flatMap(({ id, head, requested_ms, received_ms, body_bytes, body_crc, used_ms }) => {
      const key = { id: Number(id), crc: Number(body_crc) };
      if (Math.abs(nowMs - Number(used_ms)) > USE_WRITE_INTERVAL_MS && this.#usedMs.size < PENDING_USES_MAX)
        this.#usedMs.set(key.id, nowMs);
      const response = parseHead(String(head));
      if (response === undefined) return [];
      const times = { requestedMs: Number(requested_ms), receivedMs: Number(received_ms) };
      return [{ ...response, ...times, bodyBytes: Number(body_bytes), body: () => bodyOf(key) }];
    });
  }

  /** Undefined if it is missing or its checksum does not match: after a power failure a page may hold other data. */
  body({ id, crc }: BodyKey): Buffer | undefined {
    const body = this.#body.get(id)?.["body"];
    if (!(body instanceof Uint8Array) || crc32(body) !== crc) return undefined;
    return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  }

  get stats(): CacheStats {
    const row = this.#totals.get();
    return { entries: Number(row?.["entries"] ?? 0), bytes: Number(row?.["bytes"] ?? 0) };
  }

  /** How many times of use are not written yet. */
  get pendingUses(): number {
    return this.#usedMs.size;
  }

  /**
   * Writes all changes in one transaction, with the times of use and one step of eviction.
   * @returns bytes above the limit of the file
   */
  write(writes: readonly CacheWrite[], nowMs: number): number {
    this.#begin.run();
    try {
      for (const [id, usedMs] of this.#usedMs) this.#updateUse.run(usedMs, id);
      for (const write of writes) this.#apply(write, nowMs);
      const surplusBytes = this.#evict(nowMs);
      this.#commit.run();
      this.#usedMs.clear();
      return surplusBytes;
    } catch (error) {
      // SQLite rolls back itself after some errors.
      if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
      throw error;
    }
  }

  close(): void {
    this.#db.close();
  }

  #apply(write: CacheWrite, nowMs: number): void {
    const { url } = write;
    if (write.kind === "remove") {
      this.#remove.run(url);
      return;
    }
    const { response, bytes } = write;
    const { status, requestedMs, receivedMs } = response;
    const variant = variantId(response);
    const head = JSON.stringify({ ...response, requestedMs: undefined, receivedMs: undefined });
    if (write.kind === "freshen") {
      const { old } = write;
      const oldEntry = [url, variantId(old), old.requestedMs, old.receivedMs, old.status] as const;
      // A 304 may change `Vary`: the response then replaces the variant that already has the new id.
      if (variant !== variantId(old) && this.#exists.get(...oldEntry)) this.#removeVariant.run(url, variant);
      this.#renew.run(variant, head, status, requestedMs, receivedMs, bytes, nowMs, ...oldEntry);
      return;
    }
    const { body } = write;
    this.#removeVariant.run(url, variant);
    const sizes = [body.length, crc32(body), bytes] as const;
    const { lastInsertRowid } = this.#insert.run(url, variant, head, status, requestedMs, receivedMs, ...sizes, nowMs);
    this.#insertBody.run(lastInsertRowid, body);
    this.#removeSurplus.run({ url, nowMs });
  }

  #evict(nowMs: number): number {
    const surplusBytes = this.stats.bytes - this.#maxBytes;
    if (surplusBytes <= 0) return 0;
    // After the wall clock was set back, entries with a later time of use would outlive all new ones.
    this.#limitUses.run({ nowMs });
    let freedBytes = 0;
    for (const { id, bytes } of this.#leastUsed.all()) {
      this.#removeOne.run(Number(id));
      freedBytes += Number(bytes);
      if (freedBytes >= Math.min(surplusBytes, EVICTED_BYTES_AT_ONCE)) break;
    }
    return Math.max(0, surplusBytes - freedBytes);
  }
}

const NONE: readonly FoundResponse[] = Object.freeze([]);

/** Undefined for an invalid head: the entry is skipped, and replaced by the next response. */
function parseHead(text: string): Head | undefined {
  try {
    const head: unknown = JSON.parse(text);
    return isHead(head) ? head : undefined;
  } catch {
    return undefined;
  }
}

type Head = Omit<StoredResponse, "requestedMs" | "receivedMs">;

/** A file may be damaged, or changed by another program. */
function isHead(value: unknown): value is Head {
  if (typeof value !== "object" || value === null) return false;
  const { status, statusText, headers, varyNames, varyKey } = value as Partial<Record<keyof Head, unknown>>;
  const isStatus = Number.isInteger(status) && Number(status) >= 200 && Number(status) <= 599;
  if (!isStatus || typeof statusText !== "string" || typeof varyKey !== "string" || !isTexts(varyNames)) return false;
  if (typeof headers !== "object" || headers === null || Array.isArray(headers)) return false;
  return Object.values(headers).every(field => typeof field === "string" || isTexts(field));
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every(text => typeof text === "string");
}
