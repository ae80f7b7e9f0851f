import { createRequire } from "node:module";
import type { HubEvent } from "../http/hub-options.ts";
import type { Listener } from "../listeners.ts";
import { systemTime } from "../time/system-time.ts";
import type { Time } from "../time/time.ts";
import type { EventBody, TelemetryEvent } from "./events.ts";
import { redact } from "./redaction.ts";
import type { GaugeSource, Sink } from "./sink.ts";
import { stampedId } from "./stamped-id.ts";

export interface TelemetryOptions {
  readonly sinks: readonly Sink[];
  /** Letters, digits, `.`, `_`, `:` and `-`. @default the time and some random digits */
  readonly runId?: string | undefined;
  /** Whose run it is. @default "node" */
  readonly program?: string | undefined;
  /**
   * Which share of `breaker_before_call` is kept, from 0 to 1. Those that were denied are always kept, and nothing else
   * is ever sampled. @default 0.01
   */
  readonly sampleBeforeCall?: number | undefined;
  readonly time?: Time | undefined;
}

const { version } = createRequire(import.meta.url)("../../package.json") as { readonly version: string };
const SAMPLE_RATE = 0.01;

/** Throws a RangeError for an option that makes no sense. */
export function createTelemetry(options: TelemetryOptions): Telemetry {
  return new Telemetry(options);
}

/**
 * Hears what hubs tell, puts each event into its envelope once, and hands it to every sink. Nobody waits for it: what a
 * sink cannot take at once it queues, within bounds, and what it drops is counted.
 */
export class Telemetry implements AsyncDisposable {
  readonly runId: string;
  /** For `createHub({ telemetry: [telemetry.listener] })`, `hub.listen`, and whoever else tells of events. */
  readonly listener: Listener<HubEvent> = event => this.#receive(event);
  readonly #sinks: readonly Sink[];
  readonly #time: Time;
  readonly #sampleRate: number;
  readonly #failures = new Map<Sink, number>();
  #configHash = "";
  /** Whole numbers of it are events to keep: a share of exactly the size that was asked for. */
  #sampled = 0;
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
    this.#emit({ event_type: "run_started", program, version });
  }

  /** Events that did not reach a sink, by its name. */
  get dropped(): Readonly<Record<string, number>> {
    return Object.fromEntries(
      this.#sinks.map(sink => [sink.name, (sink.dropped ?? 0) + (this.#failures.get(sink) ?? 0)]),
    );
  }

  /** Gauges show this hub from now on. */
  watch(hub: GaugeSource): void {
    for (const sink of this.#sinks) sink.watch?.(hub);
  }

  /** Resolves when everything heard so far is where it belongs, or was given up. */
  async flush(): Promise<void> {
    await Promise.all(this.#sinks.map(sink => this.#settle(sink, () => sink.flush?.())));
  }

  /** The run is over: what was heard is written, and the sinks are closed. What comes later is not heard. */
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
    else if (this.#isKept()) this.#emit({ ...event, sample_rate: this.#sampleRate });
  }

  #isKept(): boolean {
    this.#sampled += this.#sampleRate;
    if (this.#sampled < 1) return false;
    this.#sampled -= 1;
    return true;
  }

  #emit(body: EventBody): void {
    if (this.#closing !== undefined || this.#sinks.every(sink => sink.isListening === false)) return;
    const { event_type } = body;
    const ts = this.#time.wallMs();
    // A literal: several times as fast as Object.assign.
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

  /** Its first error is a warning of the process; the others are counted. */
  #failed(sink: Sink, error: unknown): void {
    const failures = this.#failures.get(sink) ?? 0;
    this.#failures.set(sink, failures + 1);
    if (failures === 0)
      process.emitWarning(`the telemetry sink ${sink.name} has failed: ${messageOf(error)}`, "DocstokgWarning");
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
