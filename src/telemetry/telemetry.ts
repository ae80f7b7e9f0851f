import { messageOf } from "../errors.ts";
import type { HubEvent } from "../http/hub-options.ts";
import { PACKAGE_VERSION } from "../http/package-version.ts";
import type { Listener } from "../listeners.ts";
import { systemTime } from "../time/system-time.ts";
import type { Time } from "../time/time.ts";
import type { EventBody, TelemetryEvent } from "./events.ts";
import { redact } from "./redaction.ts";
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
  /** The clock, for tests. @default systemTime */
  readonly time?: Time | undefined;
}

const SAMPLE_RATE = 0.01;

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
  readonly listener: Listener<HubEvent> = event => this.#receive(event);
  readonly #sinks: readonly Sink[];
  readonly #time: Time;
  readonly #sampleRate: number;
  readonly #failures = new Map<Sink, number>();
  #configHash = "";
  /** Grows by the sampling rate for each event; an event is recorded when it reaches 1, so the share is exact. */
  #sampledShare = 0;
  #closing: Promise<void> | undefined;

  constructor(options: TelemetryOptions) {
    const { sinks, time = systemTime, sampleBeforeCall = SAMPLE_RATE, program = "node" } = options;
    const { runId = stampedId(time.wallMs()) } = options;
    if (!/^[\w.:-]{1,128}$/.test(runId)) {
      throw new RangeError(
        `runId must be 1 to 128 letters, digits, ".", "_", ":" or "-", not ${JSON.stringify(runId)}`,
      );
    }
    if (!(sampleBeforeCall >= 0 && sampleBeforeCall <= 1)) {
      throw new RangeError(`sampleBeforeCall must be from 0 to 1, not ${sampleBeforeCall}`);
    }
    this.runId = runId;
    this.#sinks = sinks;
    this.#time = time;
    this.#sampleRate = sampleBeforeCall;
    this.#emit({ event_type: "run_started", program, version: PACKAGE_VERSION });
  }

  /** Number of events that were dropped, by the name of the sink. */
  get dropped(): Readonly<Record<string, number>> {
    return Object.fromEntries(
      this.#sinks.map(sink => [sink.name, (sink.dropped ?? 0) + (this.#failures.get(sink) ?? 0)]),
    );
  }

  /** Sets the hub that the gauges of the sinks are read from. */
  watch(hub: GaugeSource): void {
    for (const sink of this.#sinks) sink.watch?.(hub);
  }

  /** Resolves when the events so far are written or dropped. */
  async flush(): Promise<void> {
    await Promise.all(this.#sinks.map(sink => this.#settle(sink, () => sink.flush?.())));
  }

  /** Emits `run_ended`, writes the queued events and closes the sinks. Later events are ignored. */
  close(): Promise<void> {
    if (this.#closing === undefined) {
      this.#emit({ event_type: "run_ended" });
      this.#closing = Promise.all(this.#sinks.map(sink => this.#settle(sink, () => sink.close?.()))).then(
        () => undefined,
      );
    }
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #receive(event: HubEvent): void {
    if (event.event_type === "policy_loaded") this.#configHash = event.config_hash;
    if (event.event_type !== "breaker_before_call" || !event.allowed || this.#sampleRate === 1) this.#emit(event);
    else if (this.#isSampled()) this.#emit({ ...event, sample_rate: this.#sampleRate });
  }

  #isSampled(): boolean {
    this.#sampledShare += this.#sampleRate;
    if (this.#sampledShare < 1) return false;
    this.#sampledShare -= 1;
    return true;
  }

  #emit(body: EventBody): void {
    if (this.#closing !== undefined || this.#sinks.every(sink => sink.isListening === false)) return;
    const { event_type } = body;
    const ts = this.#time.wallMs();
    // An object literal is several times faster than Object.assign.
    const event = { ts, event_type, run_id: this.runId, config_hash: this.#configHash, ...(body as object) };
    redact(event_type, event);
    for (const sink of this.#sinks) {
      if (sink.isListening === false) continue;
      try {
        sink.take(event as unknown as TelemetryEvent);
      } catch (error) {
        this.#failed(sink, error);
      }
    }
  }

  async #settle(sink: Sink, work: () => Promise<void> | undefined): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#failed(sink, error);
    }
  }

  /** The first error of a sink becomes a process warning; further ones are only counted. */
  #failed(sink: Sink, error: unknown): void {
    const failures = this.#failures.get(sink) ?? 0;
    this.#failures.set(sink, failures + 1);
    if (failures === 0)
      process.emitWarning(
        `telemetry sink ${sink.name} failed: ${messageOf(error)}; further errors are only counted`,
        "DocstokgWarning",
      );
  }
}
