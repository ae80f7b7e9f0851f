import { createHash } from "node:crypto";
import { type BreakerRecord, runningCooldown } from "../../core/breaker/breaker-record.ts";
import { StoreError } from "../../errors.ts";
import { recordAt, type StoredRecord } from "../records.ts";
import { LISTED_MAX, type RecordUpdate, type StoreRecord } from "../store.ts";
import type { RedisConnection } from "./redis-connection.ts";

/**
 * Reads a note, or puts another in its place if nobody else has done so meanwhile.
 * KEYS: the note. ARGV: the time in microseconds or nothing, "read" or "swap"; for a swap what was there, what is to be
 * there, and for how many milliseconds. Answers with the time, whether it was swapped, and what is there.
 */
const TEXT = `
local now = ARGV[1]
if now == '' then
  local time = redis.call('TIME')
  now = string.format('%.0f', time[1] * 1000000 + time[2])
end
local held = redis.call('GET', KEYS[1]) or ''
if ARGV[2] == 'read' then return {now, 0, held} end
if held ~= ARGV[3] then return {now, 0, held} end
redis.call('SET', KEYS[1], ARGV[4], 'PX', ARGV[5])
return {now, 1, ARGV[4]}
`;
const SCRIPT = { text: TEXT, sha: createHash("sha1").update(TEXT).digest("hex") };

/** Each lost race means that somebody else got through, so nobody loses so many unless something is wrong. */
const TRIES = 50;
const HOST = "host ";
/** Where other tools look. */
const COOLDOWN = "breaker:cooldown:";

interface RecordReply {
  readonly nowUs: number;
  readonly isSwapped: boolean;
  readonly text: string;
}

/**
 * Notes on a redis server: read, changed here, and put back if nobody else has changed them meanwhile. Changes are rare,
 * a host that fails or comes back, so that a second trip to the server costs less than the same rules once more in Lua.
 */
export class RedisRecords {
  readonly #connection: RedisConnection;
  readonly #prefix: string;
  readonly #serverUs: (() => number) | undefined;

  constructor(connection: RedisConnection, prefix: string, serverUs: (() => number) | undefined) {
    this.#connection = connection;
    this.#prefix = `${prefix}:record:`;
    this.#serverUs = serverUs;
  }

  async read<Value>(name: string): Promise<StoreRecord<Value>> {
    return recordOf(await this.#call(name, "read"));
  }

  async change<Value, Result>(
    name: string,
    step: (current: StoreRecord<Value>) => RecordUpdate<Value, Result>,
  ): Promise<Result> {
    let known = await this.#call(name, "read");
    for (let attempt = 0; attempt < TRIES; attempt += 1) {
      const { record, result } = step(recordOf(known));
      if (record === undefined) return result;
      const keepMs = Math.ceil((record.keepUntilUs - known.nowUs) / 1000);
      if (keepMs <= 0) return result;
      const next = JSON.stringify({ record: record.next, keepUntilUs: record.keepUntilUs } satisfies StoredRecord);
      const reply = await this.#call(name, "swap", known.text, next, String(keepMs));
      if (reply.isSwapped) {
        await this.#publish(name, record.next, keepMs, reply.nowUs);
        return result;
      }
      known = reply;
    }
    throw new StoreError(`redis: "${name}" was changed by others ${TRIES} times in a row`);
  }

  async list<Value>(prefix: string): Promise<readonly (StoreRecord<Value> & { readonly name: string })[]> {
    const { nowUs } = await this.#call("", "read");
    const from = String(Math.floor(nowUs / 1000));
    const command = ["ZRANGEBYSCORE", this.#index, from, "+inf", "LIMIT", "0", String(LISTED_MAX)];
    const names = (await this.#connection.send(this.#index, command)) as readonly string[];
    const wanted = names.filter(name => name.startsWith(prefix));
    const found = await Promise.all(wanted.map(async name => ({ name, ...(await this.read<Value>(name)) })));
    return found.filter(({ record }) => record !== undefined);
  }

  get #index(): string {
    return `${this.#prefix}index`;
  }

  /** The list of notes, and what other tools look at. In a cluster these lie elsewhere, so they are no part of the swap. */
  async #publish(name: string, note: unknown, keepMs: number, nowUs: number): Promise<void> {
    const nowMs = Math.floor(nowUs / 1000);
    const commands: [key: string, ...rest: string[]][] = [
      [this.#index, "ZADD", this.#index, String(nowMs + keepMs), name],
      [this.#index, "ZREMRANGEBYSCORE", this.#index, "-inf", String(nowMs)],
    ];
    if (name.startsWith(HOST)) {
      const key = COOLDOWN + name.slice(HOST.length);
      const cooldown = runningCooldown(note as BreakerRecord, nowUs);
      if (cooldown === undefined) commands.push([key, "DEL", key]);
      else {
        const text = JSON.stringify({ until_wall: cooldown.untilUs / 1e6, reason: cooldown.reason });
        const seconds = String(Math.ceil((cooldown.untilUs - nowUs) / 1e6));
        commands.push([key, "SET", key, text, "EX", seconds]);
      }
    }
    await Promise.all(commands.map(([key, ...command]) => this.#connection.send(key, command)));
  }

  async #call(name: string, ...args: readonly string[]): Promise<RecordReply> {
    const time = this.#serverUs?.();
    const reply = await this.#connection.call(
      { keys: [this.#prefix + name], args: [time === undefined ? "" : String(time), ...args] },
      SCRIPT,
    );
    const [now, isSwapped, text] = Array.isArray(reply) ? (reply as readonly unknown[]) : [];
    const nowUs = Number(now);
    if (!Number.isSafeInteger(nowUs) || typeof text !== "string") throw new StoreError("redis answered nonsense");
    return { nowUs, isSwapped: isSwapped === 1, text };
  }
}

function recordOf<Value>({ nowUs, text }: RecordReply): StoreRecord<Value> {
  if (text === "") return { record: undefined, nowUs };
  try {
    return recordAt(JSON.parse(text) as StoredRecord, nowUs);
  } catch (cause) {
    throw new StoreError("redis: a stored record cannot be parsed", { cause });
  }
}
