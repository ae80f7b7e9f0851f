import type { HubEvent, HubListener } from "../http/hub-options.ts";
import { PACKAGE_VERSION } from "../http/package-version.ts";
import type { StartedCall, Tracer } from "../http/tracing.ts";
import type { EventOrigin } from "../listeners.ts";
import { systemTime } from "../time/system-time.ts";
import type { Time } from "../time/time.ts";
import { AttachedSink, isThenable } from "./attached-sink.ts";
import { EmittedEvent } from "./emitted-event.ts";
import type { EventBody, EventType } from "./events.ts";
import { flushAtExit } from "./exit-flush.ts";
import { redacted } from "./redaction.ts";
import type { GaugeSource, Sink } from "./sink.ts";
import { stampedId } from "./stamped-id.ts";

/** Options of `createTelemetry`. */
export interface TelemetryOptions {
  /** The sinks that receive the events. `close()` of the telemetry closes them. */
  readonly sinks: readonly Sink[];
  /** 1 to 128 letters, digits, `.`, `_`, `:` and `-`. @default the time and random digits */
  readonly runId?: string | undefined;
  /** The name of the program, for reports. @default "node" */
  readonly program?: string | undefined;
  /**
   * The share of `breaker_before_call` events that is recorded, 0 to 1. Refusals are always recorded, and no other event
   * is sampled. @default 0.01
   */
  readonly sampleBeforeCall?: number | undefined;
  /**
   * How long `close()` waits for each sink, in ms, 1 to 3_600_000. Then the process emits a warning, and the events that
   * the sink has not written count as dropped. @default 10_000
   */
  readonly closeTimeoutMs?: number | undefined;
  /** The clock, for tests. @default systemTime */
  readonly time?: Time | undefined;
}

const SAMPLE_RATE = 0.01;
/** A disk or a server that hangs must not keep the program from ending. */
const CLOSE_TIMEOUT_MS = 10_000;
const CLOSE_TIMEOUT_MS_MAX = 3_600_000;

/** Throws a RangeError that names an invalid option. */
export function createTelemetry(options: TelemetryOptions): Telemetry {
  return new Telemetry(options);
}

/**
 * Adds time, run id and policy hash to the events of hubs and passes them to every sink. Requests never wait for it: sinks
 * queue events up to a limit, and count those that they drop.
 */
export class Telemetry implements AsyncDisposable {
  /** The id of the run, in every event. */
  readonly runId: string;
  /** Pass it to `createHub({ telemetry: [telemetry.listener] })` or to `listen` of a hub, limiter or breaker. */
  readonly listener: HubListener;
  readonly #sinks: readonly AttachedSink[];
  readonly #time: Time;
  readonly #sampleRate: number;
  readonly #closeTimeoutMs: number;
  readonly #stopExitFlush: () => void;
  /** The hash of the policy that was loaded last, for the end of the run. */
  #lastHash = "";
  /** Grows by the sampling rate for each event. When it reaches 1, the event is recorded, so the share is exact. */
  #sampledShare = 0;
  #closing: Promise<void> | undefined;

  constructor(options: TelemetryOptions) {
    const { sinks, time = systemTime, sampleBeforeCall = SAMPLE_RATE, program = "node" } = options;
    const { runId = stampedId(time.wallMs()), closeTimeoutMs = CLOSE_TIMEOUT_MS } = options;
    if (!/^[\w.:-]{1,128}$/.test(runId)) {
      throw new RangeError(
        `runId must be 1 to 128 letters, digits, ".", "_", ":" or "-", not ${JSON.stringify(runId)}`,
      );
    }
    if (!(sampleBeforeCall >= 0 && sampleBeforeCall <= 1)) {
      throw new RangeError(`sampleBeforeCall must be from 0 to 1, not ${sampleBeforeCall}`);
    }
    if (!(closeTimeoutMs >= 1 && closeTimeoutMs <= CLOSE_TIMEOUT_MS_MAX)) {
      throw new RangeError(`closeTimeoutMs must be from 1 to ${CLOSE_TIMEOUT_MS_MAX}, not ${closeTimeoutMs}`);
    }
    this.runId = runId;
    this.#closeTimeoutMs = closeTimeoutMs;
    this.#sinks = attached(sinks);
    this.#time = time;
    this.#sampleRate = sampleBeforeCall;
    this.listener = this.#listener();
    for (const { sink, id } of this.#sinks) sink.attach?.({ id, dropped: () => this.dropped });
    this.#stopExitFlush = flushAtExit(() => {
      for (const sink of this.#sinks) sink.flushSync();
    });
    this.#emit({ event_type: "run_started", program, version: PACKAGE_VERSION }, "");
  }

  /**
   * Number of events that were dropped, by the id of the sink: its name, or `name-2`, `name-3` for further sinks of the
   * same name.
   */
  get dropped(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#sinks.map(({ id, dropped }) => [id, dropped]));
  }

  /** Sets the hub that the gauges of the sinks are read from. */
  watch(hub: GaugeSource): void {
    for (const { sink } of this.#sinks) sink.watch?.(hub);
  }

  /** Resolves when the events so far are written or dropped. Unlike `close`, it has no time limit. */
  async flush(): Promise<void> {
    await Promise.all(this.#sinks.map(sink => sink.flush()));
  }

  /**
   * Emits `run_ended`, writes the queued events and closes the sinks, within `closeTimeoutMs`. Later events are ignored.
   * Never rejects.
   */
  close(): Promise<void> {
    if (this.#closing === undefined) {
      this.#emit({ event_type: "run_ended" }, this.#lastHash);
      this.#closing = Promise.all(this.#sinks.map(sink => sink.close(this.#time, this.#closeTimeoutMs))).then(() =>
        this.#stopExitFlush(),
      );
    }
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #listener(): HubListener {
    const receive = (event: HubEvent, source?: EventOrigin) => this.#receive(event, source);
    const listensTo = (type: string) => this.#listensTo(type as EventType);
    return Object.assign(receive, { listensTo, tracer: this.#tracer(), callStarted: this.#callObserver() });
  }

  /** The first tracer of the sinks, until `close`. */
  #tracer(): Tracer | undefined {
    const tracer = this.#sinks.find(({ sink }) => sink.tracer !== undefined)?.sink.tracer;
    return tracer && { callStarted: call => (this.#closing === undefined ? tracer.callStarted(call) : undefined) };
  }

  /** Tells the sinks that want to know when calls begin, until `close`. */
  #callObserver(): ((call: StartedCall) => void) | undefined {
    const informed = this.#sinks.filter(({ sink }) => sink.callStarted !== undefined);
    if (informed.length === 0) return undefined;
    return call => {
      if (this.#closing === undefined) for (const sink of informed) sink.callStarted(call);
    };
  }

  /** Called several times for each request, so it is kept short. */
  #listensTo(type: EventType): boolean {
    if (this.#closing !== undefined) return false;
    const sinks = this.#sinks;
    for (let at = 0; at < sinks.length; at += 1) if ((sinks[at] as AttachedSink).listensTo(type)) return true;
    return false;
  }

  #receive(event: HubEvent, source: EventOrigin | undefined): void {
    const hash = source?.configHash ?? "";
    if (event.event_type === "policy_loaded") this.#lastHash = event.config_hash;
    if (event.event_type !== "breaker_before_call" || !event.allowed || this.#sampleRate === 1) this.#emit(event, hash);
    else if (this.#isSampled()) this.#emit({ ...event, sample_rate: this.#sampleRate }, hash);
  }

  #isSampled(): boolean {
    this.#sampledShare += this.#sampleRate;
    if (this.#sampledShare < 1) return false;
    this.#sampledShare -= 1;
    return true;
  }

  #emit(body: EventBody, config_hash: string): void {
    if (this.#closing !== undefined) return;
    const { event_type } = body;
    const hash = body.event_type === "policy_loaded" ? body.config_hash : config_hash;
    const envelope = { ts: this.#time.wallMs(), run_id: this.runId, config_hash: hash };
    const emitted = new EmittedEvent(redacted(body), envelope);
    for (const sink of this.#sinks) if (sink.listensTo(event_type)) sink.take(emitted);
  }
}

/** Gives each sink an id of its own. */
function attached(sinks: readonly Sink[]): readonly AttachedSink[] {
  if (!Array.isArray(sinks)) throw new RangeError("sinks must be a list, such as [await jsonlSink(file)]");
  for (const [index, sink] of sinks.entries())
    if (typeof sink?.name !== "string" || typeof sink.take !== "function")
      throw new RangeError(
        `sinks[${index}] is not a sink: it needs a name and a function take${isThenable(sink) ? "; await jsonlSink(…), sqliteSink(…), prometheusSink(…) and otelSink(…)" : ""}`,
      );
  const ids = new Set<string>();
  return sinks.map(sink => {
    let id = sink.name;
    for (let number = 2; ids.has(id); number += 1) id = `${sink.name}-${number}`;
    ids.add(id);
    return new AttachedSink(id, sink);
  });
}
