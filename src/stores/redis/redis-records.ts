import { createHash } from "node:crypto";
import { type BreakerRecord, runningCooldown } from "../../core/breaker/breaker-record.ts";
import { StoreError } from "../../errors.ts";
import { hostOfRecord } from "../record-names.ts";
import { recordAt, type StoredRecord } from "../records.ts";
import { LISTED_MAX, type RecordUpdate, type StoreRecord } from "../store.ts";
import type { RedisConnection } from "./redis-connection.ts";
import { DEFAULT_PREFIX } from "./redis-keys.ts";

/**
 * Reads a record, or replaces it if it has not changed (compare and swap).
 *   KEYS   the record
 *   ARGV   the time in microseconds (empty: the server's clock), "read" or "swap";
 *          for a swap: the hash of the expected text, the new text, and how many milliseconds to keep it
 *   reply  the time, 1 if the record was replaced, its text now, and the hash of that text
 * The hash is computed here: a text that is no valid UTF-8 reaches this process changed.
 */
const TEXT = `
local now = ARGV[1]
if now == '' then
  local time = redis.call('TIME')
  now = string.format('%.0f', time[1] * 1000000 + time[2])
end
local stored = redis.pcall('GET', KEYS[1]) or ''
if type(stored) == 'table' then
  if not stored.err:find('WRONGTYPE', 1, true) then error(stored) end
  -- One key that cannot be read must not make the store unusable: it is renamed, and kept for a day.
  redis.call('RENAME', KEYS[1], KEYS[1] .. ':damaged')
  redis.call('PEXPIRE', KEYS[1] .. ':damaged', 86400000)
  stored = ''
end
local hash = redis.sha1hex(stored)
if ARGV[2] == 'read' or hash ~= ARGV[3] then return {now, 0, stored, hash} end
redis.call('SET', KEYS[1], ARGV[4], 'PX', ARGV[5])
return {now, 1, ARGV[4], ''}
`;
const SCRIPT = { text: TEXT, sha: createHash("sha1").update(TEXT).digest("hex") };

/** The copy of a cooldown for other tools (law S5). Its name begins with the prefix, if the store has one of its own. */
const COOLDOWN_KEY = "breaker:cooldown:";

interface RecordReply {
  readonly nowUs: number;
  readonly isSwapped: boolean;
  readonly text: string;
  readonly hash: string;
}

/**
 * Records on a Redis server. A change reads the record, runs the step in this process, and writes the result if the
 * record is unchanged. Changes are rare (a host fails or recovers), so a second round trip costs less than a second
 * implementation of the steps in Lua.
 */
export class RedisRecords {
  readonly #connection: RedisConnection;
  readonly #prefix: string;
  readonly #cooldownPrefix: string;
  readonly #serverUs: (() => number) | undefined;

  constructor(connection: RedisConnection, prefix: string, serverUs: (() => number) | undefined) {
    this.#connection = connection;
    this.#prefix = `${prefix}:record:`;
    this.#cooldownPrefix = prefix === DEFAULT_PREFIX ? COOLDOWN_KEY : `${prefix}:${COOLDOWN_KEY}`;
    this.#serverUs = serverUs;
  }

  async read<Value>(name: string): Promise<StoreRecord<Value>> {
    return recordOf(await this.#call(name, "read"));
  }

  async change<Value, Result>(
    name: string,
    step: (current: StoreRecord<Value>) => RecordUpdate<Value, Result>,
  ): Promise<Result> {
    let stored = await this.#call(name, "read");
    // A conflict means that another process has succeeded, so the store works, however many follow each other. A pause
    // between them would cost throughput: the next attempt is a round trip away in any case.
    for (;;) {
      const { record: update, result } = step(recordOf(stored));
      if (update === undefined) return result;
      const keepMs = Math.ceil((update.keepUntilUs - stored.nowUs) / 1000);
      if (keepMs <= 0) return result;
      const next = JSON.stringify({ record: update.next, keepUntilUs: update.keepUntilUs } satisfies StoredRecord);
      // An equal record is not written again: the write would be a conflict for every other process.
      if (next === stored.text) return result;
      const reply = await this.#call(name, "swap", stored.hash, next, String(keepMs));
      if (reply.isSwapped) {
        await this.#publish(name, update.next, keepMs, reply.nowUs);
        return result;
      }
      stored = reply;
    }
  }

  async list<Value>(prefix: string): Promise<readonly (StoreRecord<Value> & { readonly name: string })[]> {
    const { nowUs } = await this.#call("", "read");
    const from = String(Math.floor(nowUs / 1000));
    const wanted: string[] = [];
    for (let offset = 0; wanted.length < LISTED_MAX; offset += LISTED_MAX) {
      const command = ["ZRANGEBYSCORE", this.#index, from, "+inf", "LIMIT", String(offset), String(LISTED_MAX)];
      const names = (await this.#send(this.#index, command)) as readonly string[];
      wanted.push(...names.filter(name => name.startsWith(prefix)));
      if (names.length < LISTED_MAX) break;
    }
    const found = await Promise.all(wanted.map(async name => ({ name, ...(await this.read<Value>(name)) })));
    return found.filter(({ record }) => record !== undefined);
  }

  get #index(): string {
    return `${this.#prefix}index`;
  }

  /**
   * Updates the index of records and the copy for other tools. In a cluster these may be on another server, so they are
   * not part of the swap.
   */
  async #publish(name: string, record: unknown, keepMs: number, nowUs: number): Promise<void> {
    const nowMs = Math.floor(nowUs / 1000);
    const commands: [key: string, ...rest: string[]][] = [
      [this.#index, "ZADD", this.#index, String(nowMs + keepMs), name],
      [this.#index, "ZREMRANGEBYSCORE", this.#index, "-inf", String(nowMs)],
    ];
    const host = hostOfRecord(name);
    if (host !== undefined) {
      const key = this.#cooldownPrefix + host;
      const cooldown = runningCooldown(record as BreakerRecord, nowUs);
      if (cooldown === undefined) commands.push([key, "DEL", key]);
      else {
        const text = JSON.stringify({ until_wall: cooldown.untilUs / 1e6, reason: cooldown.reason });
        const seconds = String(Math.ceil((cooldown.untilUs - nowUs) / 1e6));
        commands.push([key, "SET", key, text, "EX", seconds]);
      }
    }
    await Promise.all(commands.map(([key, ...command]) => this.#send(key, command)));
  }

  /** A key of another type is renamed and kept for a day, and the command is repeated. */
  async #send(key: string, command: readonly string[]): Promise<unknown> {
    try {
      return await this.#connection.send(key, command);
    } catch (error) {
      if (!isReply(error, "WRONGTYPE")) throw error;
      const aside = `${key}:damaged`;
      // Another command may have renamed it meanwhile.
      await this.#connection.send(key, ["RENAME", key, aside]).catch(renaming => {
        if (!isReply(renaming, "no such key")) throw renaming;
      });
      await this.#connection.send(key, ["PEXPIRE", aside, "86400000"]);
      return this.#connection.send(key, command);
    }
  }

  async #call(name: string, ...args: readonly string[]): Promise<RecordReply> {
    const time = this.#serverUs?.();
    const key = this.#prefix + name;
    const call = { keys: [key], args: [time === undefined ? "" : String(time), ...args] };
    const reply = await this.#connection.call(key, () => call, SCRIPT);
    const [now, isSwapped, text, hash] = Array.isArray(reply) ? (reply as readonly unknown[]) : [];
    const nowUs = Number(now);
    if (!Number.isSafeInteger(nowUs) || typeof text !== "string" || typeof hash !== "string")
      throw new StoreError(`redis: unexpected reply while reading the record "${name}"`);
    return { nowUs, isSwapped: isSwapped === 1, text, hash };
  }
}

/** A text that cannot be parsed counts as no record: it concerns one host, and the next write replaces it. */
function recordOf<Value>({ nowUs, text }: RecordReply): StoreRecord<Value> {
  try {
    return recordAt(text === "" ? undefined : (JSON.parse(text) as StoredRecord), nowUs);
  } catch {
    return { record: undefined, nowUs };
  }
}

function isReply(error: unknown, text: string): boolean {
  return error instanceof StoreError && error.message.includes(text);
}
