import type { ServerResponse } from "node:http";
import { redactedText } from "../core/text/redaction.ts";
import { messageOf } from "../errors.ts";
import type { Time, Timer } from "../time/time.ts";
import { BoundedRead } from "./bounded-read.ts";
import type { AboutState, DashboardState } from "./dashboard-state.ts";
import type { DashboardSource, SourceState } from "./source.ts";
import { StateDelta } from "./state-delta.ts";

/** Pages that may be connected at once. */
const CLIENTS_MAX = 32;
/**
 * A connection with more unread bytes of changes is closed. The browser connects again and gets the whole state, which
 * does not count: with thousands of hosts it may be larger than this.
 */
const BACKLOG_BYTES_MAX = 8_000_000;
/** From the start of one read to the start of the next. A change must be drawn within a second. */
const REFRESH_MS = 900;
/** A source that has not answered by then is reported: pages must not show an old state as if it were the present one. */
const LATE_MS = 3000;
/** Refreshes between two comments, which keep connections open through proxies, and fail if a page is gone. */
const HEARTBEAT_REFRESHES = 15;

const EMPTY: SourceState = {
  totals: { calls: 0, inFlight: 0, waiting: 0 },
  hosts: [],
  processes: [],
  series: { stepMs: 1000, points: [] },
  events: [],
  run: null,
};

/**
 * Sends the state to connected pages as server-sent events: everything once, then changes only. While no page is
 * connected, the source is not read and no timer is set.
 */
export class LiveFeed {
  readonly #source: DashboardSource;
  readonly #about: AboutState;
  readonly #time: Time;
  readonly #sourceState: BoundedRead<SourceState>;
  /** With the number of bytes that may wait for each. */
  readonly #clients = new Map<ServerResponse, number>();
  #delta = new StateDelta();
  #state: DashboardState | undefined;
  #timer: Timer | undefined;
  #reading: Promise<DashboardState> | undefined;
  #refreshes = 0;
  #isClosed = false;

  constructor(source: DashboardSource, about: AboutState, time: Time) {
    this.#source = source;
    this.#about = about;
    this.#time = time;
    this.#sourceState = new BoundedRead(() => source.read(), time, LATE_MS);
  }

  /** Takes over the response. False if too many pages are connected. */
  async connect(response: ServerResponse): Promise<boolean> {
    if (this.#clients.size >= CLIENTS_MAX || this.#isClosed) return false;
    // A response that is already destroyed emits no "close".
    if (response.destroyed) return true;
    this.#clients.set(response, BACKLOG_BYTES_MAX);
    this.#source.setWatched(true);
    response.on("close", () => this.#disconnect(response));
    response.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
    });
    // The other pages get the pending changes first: then all pages have the state to which the next change applies.
    await this.refresh();
    if (response.closed || this.#state === undefined) return true;
    const text = messageText("state", JSON.stringify(this.#state));
    this.#clients.set(response, Buffer.byteLength(text) + BACKLOG_BYTES_MAX);
    response.write(text);
    return true;
  }

  /** The state now. */
  async read(): Promise<DashboardState> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  /** Shows a change of the source at once. A read that began before the change may lack it, so another one follows. */
  async refreshAfterChange(): Promise<void> {
    await this.#reading;
    await this.refresh();
  }

  /** Reads the state and sends what has changed. */
  async refresh(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    const isFirst = this.#state === undefined;
    const startedUs = this.#time.monotonicUs();
    const state = await this.read();
    if (state !== this.#state) {
      const patch = this.#delta.next(state);
      this.#state = state;
      if (patch !== undefined && !isFirst) this.#send("patch", patch);
    }
    this.#schedule((this.#time.monotonicUs() - startedUs) / 1000);
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    for (const client of this.#clients.keys()) client.end();
    this.#clients.clear();
  }

  /** After a long read comes a pause of at least the same length, so that the process has time for its own work. */
  #schedule(readMs: number): void {
    if (this.#isClosed || this.#clients.size === 0 || this.#timer !== undefined) return;
    this.#timer = this.#time.setTimer(Math.max(REFRESH_MS - readMs, readMs), () => {
      this.#timer = undefined;
      this.#refreshes += 1;
      if (this.#refreshes % HEARTBEAT_REFRESHES === 0) for (const client of this.#clients.keys()) client.write(":\n\n");
      void this.refresh();
    });
  }

  async #read(): Promise<DashboardState> {
    const about = this.#about;
    try {
      const { trouble = null, ...state } = await this.#sourceState.value();
      return { nowMs: this.#time.wallMs(), about, ...state, trouble: trouble && redactedText(trouble) };
    } catch (error) {
      const last: SourceState = this.#state ?? EMPTY;
      const trouble = `The state cannot be read now, and the page shows the last one: ${redactedText(messageOf(error))}`;
      return { ...last, nowMs: this.#time.wallMs(), about, trouble };
    }
  }

  /** @param data JSON */
  #send(event: string, data: string): void {
    const text = messageText(event, data);
    for (const [client, bytesMax] of this.#clients) {
      if (client.writableLength <= bytesMax) client.write(text);
      else {
        client.destroy();
        this.#disconnect(client);
      }
    }
  }

  #disconnect(client: ServerResponse): void {
    if (!this.#clients.delete(client) || this.#clients.size > 0) return;
    this.#source.setWatched(false);
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}

function messageText(event: string, data: string): string {
  return `event: ${event}\ndata: ${data}\n\n`;
}
