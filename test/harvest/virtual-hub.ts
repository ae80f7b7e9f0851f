/**
 * The shipped rate limits and the simulated internet on virtual time, without sockets: hours of a run pass in seconds. The
 * limiter is the real one; the services enforce the limits that they document.
 */
import { Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { RateLimiter } from "../../src/gate/rate-limiter.ts";
import type { HarvestRun } from "../../src/harvest/run.ts";
import type { Hub, RequestOptions } from "../../src/http/hub.ts";
import { loadPolicy } from "../../src/policy/load.ts";
import type { RatelimitsOptions } from "../../src/policy/ratelimit-schema.ts";
import type { Role } from "../../src/policy/roles.ts";
import type { FakeTime } from "../../src/testing/fake-time.ts";
import type { SimulatedReply, SimulatedRequest } from "../../src/testing/internet/exchange.ts";
import { LimitEnforcer } from "../../src/testing/internet/limit-enforcer.ts";
import { LIMITS } from "../../src/testing/internet/limits.ts";

export interface SentRequest {
  readonly host: string;
  readonly path: string;
  readonly role: string;
  readonly method: string;
  readonly atMs: number;
}

export interface VirtualHub {
  readonly hub: Pick<Hub, "request">;
  readonly sent: SentRequest[];
  /** Requests that a service has rejected. */
  readonly rejected: SentRequest[];
  /** Requests that wait at the gate. */
  readonly queued: () => number;
}

export interface VirtualHubOptions {
  readonly time: FakeTime;
  readonly answer: (request: SimulatedRequest) => SimulatedReply | Promise<SimulatedReply>;
  /** @default the shipped limits */
  readonly limits?: RatelimitsOptions | undefined;
  /** Whether the services enforce their limits. @default true */
  readonly isEnforced?: boolean | undefined;
}

export async function virtualHub({ time, answer, limits, isEnforced = true }: VirtualHubOptions): Promise<VirtualHub> {
  const policy = limits ?? (await loadPolicy({ env: {} })).ratelimits.options;
  const limiter = new RateLimiter({ ...policy, backend: undefined }, { time });
  const enforcer = new LimitEnforcer(isEnforced ? LIMITS : []);
  const sent: SentRequest[] = [];
  const rejected: SentRequest[] = [];
  const visits = new Map<string, number>();
  let queued = 0;

  const request = async (url: string | URL, options: RequestOptions = {}) => {
    const { host, pathname: path, search, searchParams, protocol } = new URL(url);
    const { maxWaitMs, role = "metadata", signal, method = "GET", body = "", weight } = options;
    queued += 1;
    const grant = await limiter
      .acquire({ host, role: role as Role, path, maxWaitMs, weight, signal: signal as AbortSignal })
      .finally(() => {
        queued -= 1;
      });
    try {
      const record = { host, path, role: String(role), method: String(method), atMs: time.monotonicUs() / 1000 };
      sent.push(record);
      // What the hub adds to identify its user.
      if (host === "api.unpaywall.org") searchParams.set("email", "test@example.org");
      const headers = { ...lowerCase(options.headers), "user-agent": "docstokg (mailto:test@example.org)" };
      const simulated: SimulatedRequest = {
        ...{ method: String(method), isTls: protocol === "https:", host, path, search, query: searchParams, headers },
        ...{ body: String(body ?? ""), earlierRequests: visits.get(String(url)) ?? 0, wallMs: time.wallMs() },
      };
      visits.set(String(url), simulated.earlierRequests + 1);
      const decision = enforcer.decide(simulated, time.monotonicUs());
      if (decision.kind !== "admitted") rejected.push(record);
      if (decision.kind === "blocked") throw Object.assign(new Error("blocked"), { code: "ECONNREFUSED" });
      await setImmediate();
      const reply = decision.kind === "rejected" ? decision.reply : await answer(simulated);
      if (decision.kind === "admitted") decision.release();
      const bytes = reply.body instanceof Uint8Array ? reply.body : Buffer.alloc(0);
      const cut = reply.cutAtBytes;
      const stream = Readable.from(cut === undefined ? [Buffer.from(bytes)] : cutBody(bytes, cut), {
        objectMode: false,
      });
      const length = reply.headers["content-length"] ?? String(bytes.length);
      return Object.assign(
        { statusCode: reply.status, headers: { ...reply.headers, "content-length": length }, body: stream },
        { body: Object.assign(stream, { dump: async () => void stream.destroy() }) },
      );
    } finally {
      grant.release();
    }
  };
  return { hub: { request } as unknown as Pick<Hub, "request">, sent, rejected, queued: () => queued };
}

async function* cutBody(bytes: Uint8Array, cutAt: number): AsyncGenerator<Uint8Array> {
  yield bytes.subarray(0, cutAt);
  throw Object.assign(new Error("connection lost"), { code: "UND_ERR_SOCKET" });
}

function lowerCase(headers: RequestOptions["headers"]): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers ?? {}).map(([name, value]) => [name.toLowerCase(), String(value)]));
}

/** Runs until every work is settled: time moves whenever only the gate and timers are waited for. */
export async function runVirtually(time: FakeTime, run: HarvestRun, { queued }: VirtualHub): Promise<void> {
  let isOver = false;
  const ended = run.pipeline.run().finally(() => {
    isOver = true;
  });
  // Awaited at the end; an error before that must not be an unhandled rejection.
  ended.catch(() => undefined);
  for (let turns = 0; !isOver; ) {
    await setImmediate();
    turns = run.pipeline.inFlight > queued() ? 0 : turns + 1;
    // Several turns, because an answer may start further requests.
    if (turns < 4) continue;
    turns = 0;
    const nextMs = time.nextTimerMs;
    if (nextMs !== undefined) await time.advance(nextMs);
  }
  await ended;
}
