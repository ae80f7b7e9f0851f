import type { Duplex } from "node:stream";
import type { Ongoing } from "../active-requests.ts";
import type { CacheVerdict } from "../call-record.ts";
import { fieldLine } from "../headers.ts";
import { DROPPED_BYTES_MAX } from "../stages/resending-request.ts";
import type { Flow, HeaderFields, Outgoing, ResponseHead, Send, Sink } from "../stages/stage.ts";
import { headWithVerdict, replay, type Stored } from "./cache-reply.ts";

/** An older answer that a request is to confirm, or that stands in for its own. */
export interface Old {
  /** The request that asks whether it still holds. */
  readonly conditional: Outgoing;
  /** The answer as it may be served now; undefined when it has vanished. */
  readonly serve: () => { readonly stored: Stored; readonly body: Buffer } | undefined;
  /** True when it may be served although the server cannot be asked. */
  readonly mayServeOnError: boolean;
  /** What a 304 makes of it; undefined when the 304 is about another representation. */
  readonly confirm: (head: ResponseHead) => { readonly stored: Stored; readonly body: Buffer } | undefined;
}

export interface FillRoom {
  readonly next: Send;
  readonly maxBytes: number;
  readonly isStorable: (head: ResponseHead) => boolean;
  readonly store: (head: ResponseHead, body: readonly Buffer[]) => void;
  /** Somebody has to ask again, for himself alone where answers cannot be shared. */
  readonly rejoin: (request: Outgoing, sink: Sink, isAlone: boolean) => Flow;
  /** It was of no use to those who waited. */
  readonly unshared: () => void;
  /** No newcomer is to wait for this one any more. */
  readonly settled: () => void;
  /** Nothing more will come of it. */
  readonly over: () => void;
}

/** Somebody who waits for an answer under way. */
class Subscriber implements Flow {
  readonly request: Outgoing;
  readonly sink: Sink;
  isPaused = false;
  #fill: Fill | undefined;
  /** What steers it once it has left the fill. */
  #own: Flow | undefined;

  constructor(fill: Fill, request: Outgoing, sink: Sink) {
    this.#fill = fill;
    this.request = request;
    this.sink = sink;
  }

  goesOn(flow: Flow): void {
    this.#fill = undefined;
    this.#own = flow;
    if (this.isPaused) flow.pause();
  }

  pause(): void {
    this.isPaused = true;
    this.#own?.pause();
    this.#fill?.paceChanged();
  }

  resume(): void {
    this.isPaused = false;
    this.#own?.resume();
    this.#fill?.paceChanged();
  }

  abort(reason: unknown): void {
    this.#own?.abort(reason);
    this.#fill?.leave(this, reason);
    this.#fill = undefined;
  }
}

/**
 * One request on its way for everybody who asks the same meanwhile.
 *
 * The first one sees the answer as it comes. The others get it whole when it is there: so one who reads slowly, or not
 * at all, holds up nobody, and what must be kept in memory is bounded by what the cache would keep anyway. An answer
 * that cannot be shared is the first one's alone, and the others go their own ways. Nobody's abort ends what somebody
 * else still waits for.
 */
export class Fill implements Sink, Ongoing {
  before: Ongoing | undefined = undefined;
  behind: Ongoing | undefined = undefined;
  readonly #room: FillRoom;
  readonly #request: Outgoing;
  readonly #old: Old | undefined;
  #first: Subscriber | undefined;
  readonly #others = new Set<Subscriber>();
  #flow: Flow | undefined;
  #head: ResponseHead | undefined;
  #isStorable = false;
  /** What has come of an answer that can be shared. */
  #chunks: Buffer[] | undefined;
  #bytes = 0;
  #isDropping = false;
  #isOver = false;
  /** It goes on even when nobody waits for it. */
  readonly #isBackground: boolean;

  constructor(room: FillRoom, request: Outgoing, old: Old | undefined, isBackground: boolean) {
    this.#room = room;
    this.#request = request;
    this.#old = old;
    this.#isBackground = isBackground;
  }

  begin(): void {
    this.#flow = this.#room.next(this.#request, this);
  }

  /** The answer as it comes, for the one it is asked for; `request` is his own, without our conditions. */
  lead(request: Outgoing, sink: Sink): Flow {
    this.#first = new Subscriber(this, request, sink);
    return this.#first;
  }

  /** Whether somebody may wait for this one: it is on the wire, or he is as patient. A deadline is patience, too. */
  suits({ call }: Outgoing): boolean {
    const { record, call: own } = this.#request;
    const { maxWaitMs, deadlineMs } = call;
    if (record.sentMs !== undefined || maxWaitMs === Number.POSITIVE_INFINITY) return true;
    return maxWaitMs === own.maxWaitMs && (own.deadlineMs === undefined || own.deadlineMs === deadlineMs);
  }

  /** The answer when it is there. */
  join(request: Outgoing, sink: Sink): Flow {
    const other = new Subscriber(this, request, sink);
    this.#others.add(other);
    return other;
  }

  leave(one: Subscriber, reason: unknown): void {
    if (one === this.#first) this.#first = undefined;
    this.#others.delete(one);
    if (this.#head === undefined) this.#first ??= this.#promoted();
    if (this.#first !== undefined || this.#others.size > 0 || this.#isBackground) this.paceChanged();
    else this.abort(reason);
  }

  /** Only an answer that is not kept is held back for its reader; one that is kept is bounded. */
  paceChanged(): void {
    if (this.#head === undefined || this.#chunks !== undefined || this.#isDropping) return;
    if (this.#first?.isPaused) this.#flow?.pause();
    else this.#flow?.resume();
  }

  abort(reason: unknown): void {
    if (this.#isOver) return;
    this.#flow?.abort(reason);
    this.#end();
  }

  informed(head: ResponseHead): void {
    this.#first?.sink.informed(head);
  }

  started(head: ResponseHead): void {
    this.#head = head;
    if (this.#old !== undefined && this.#servedFromOld(this.#old, head)) return;
    this.#isStorable = this.#room.isStorable(head);
    const length = Number(fieldLine(head.headers["content-length"]) ?? 0);
    const isShared = this.#isStorable || this.#request.record.outcome?.kind === "failure";
    if (isShared && !(length > this.#room.maxBytes)) this.#chunks = [];
    else {
      this.#room.unshared();
      this.#part(true);
    }
    if (this.#first === undefined) {
      // Asked in the background, and nothing to keep.
      if (this.#chunks === undefined) this.#drop();
      return;
    }
    this.#first.request.record.verdict = "miss";
    this.#first.sink.started(headWithVerdict(head, "miss"));
    // Held back while nobody knew what would come.
    this.paceChanged();
  }

  data(chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#isDropping) {
      if (this.#bytes > DROPPED_BYTES_MAX) this.abort(undefined);
      return;
    }
    if (this.#chunks !== undefined) this.#chunks.push(chunk);
    this.#first?.sink.data(chunk);
    if (this.#chunks === undefined || this.#bytes <= this.#room.maxBytes) return;
    // Too long to keep: from here on it is its reader's alone.
    this.#chunks = undefined;
    this.#room.unshared();
    this.#part(true);
    if (this.#first === undefined) this.abort(undefined);
    else this.paceChanged();
  }

  ended(trailers: HeaderFields, rawTrailers: unknown): void {
    const { status = 0, statusText = "", headers = {} } = this.#head ?? {};
    const chunks = this.#chunks;
    if (chunks !== undefined && this.#head !== undefined) {
      if (this.#isStorable) this.#room.store(this.#head, chunks);
      const body = this.#others.size > 0 ? Buffer.concat(chunks) : undefined;
      this.#tellOthers(other => replay(other.request, "coalesced", { status, statusText, headers }, body, other.sink));
    }
    const first = this.#first;
    this.#end();
    if (!this.#isDropping) first?.sink.ended(trailers, rawTrailers);
  }

  failed(error: unknown): void {
    if (this.#isDropping) {
      this.#end();
      return;
    }
    if (this.#head === undefined && this.#old?.mayServeOnError && this.#serve("stale", this.#old.serve())) {
      this.#end();
      return;
    }
    const first = this.#first;
    // A host that cannot be reached is the same for all. A refusal, an abort or a break is this request's own.
    const isForAll = this.#head === undefined && this.#request.record.outcome?.kind === "failure";
    if (isForAll) {
      const others = [...this.#others];
      this.#end();
      for (const { sink } of others) sink.failed(error);
    } else {
      this.#part(false);
      this.#end();
    }
    first?.sink.failed(error);
  }

  upgraded(head: ResponseHead, socket: Duplex): void {
    const first = this.#first;
    this.#part(true);
    this.#end();
    first?.sink.upgraded(head, socket);
  }

  /** True when everybody has got the older answer. */
  #servedFromOld(old: Old, head: ResponseHead): boolean {
    const { status } = head;
    if (status === 304) {
      const confirmed = old.confirm(head);
      if (this.#serve("revalidated", confirmed)) return this.#drop();
      // The 304 is about something that we do not have: it has to be asked for without conditions.
      const first = this.#first;
      this.#first = undefined;
      if (first !== undefined) this.#others.add(first);
      this.#part(false);
      return this.#drop();
    }
    const isTrouble = status >= 500 || status === 429;
    return isTrouble && old.mayServeOnError && this.#serve("stale", old.serve()) && this.#drop();
  }

  #serve(verdict: CacheVerdict, answer: ReturnType<Old["serve"]>): boolean {
    if (answer === undefined) return false;
    const { stored, body } = answer;
    const first = this.#first;
    this.#first = undefined;
    if (first !== undefined) first.goesOn(replay(first.request, verdict, stored, body, first.sink));
    this.#tellOthers(other => replay(other.request, "coalesced", stored, body, other.sink));
    return true;
  }

  #drop(): true {
    this.#isDropping = true;
    this.#room.settled();
    return true;
  }

  /** The others ask again. */
  #part(isAlone: boolean): void {
    this.#room.settled();
    this.#tellOthers(other => this.#room.rejoin(other.request, other.sink, isAlone));
  }

  #tellOthers(tell: (other: Subscriber) => Flow): void {
    const others = [...this.#others];
    this.#others.clear();
    for (const other of others) other.goesOn(tell(other));
  }

  #promoted(): Subscriber | undefined {
    for (const other of this.#others) {
      this.#others.delete(other);
      return other;
    }
    return undefined;
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#first = undefined;
    this.#others.clear();
    this.#room.settled();
    this.#room.over();
  }
}
