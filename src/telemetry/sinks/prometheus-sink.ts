/** The one file that knows `prom-client`, which is loaded when a sink is made, and never before. */
import { ConfigError } from "../../errors.ts";
import {
  DELAY_BUCKETS_MS,
  METRICS,
  MetricCollector,
  type MetricName,
  type MetricRecorder,
  type MetricSpec,
} from "../metrics.ts";
import type { GaugeSource, Sink } from "../sink.ts";

/** A registry of `prom-client`, as far as we use one. */
export interface MetricsRegistry {
  readonly contentType: string;
  metrics(): Promise<string>;
}

export interface PrometheusSinkOptions {
  /** One of `prom-client`'s. @default a new one */
  readonly registry?: MetricsRegistry | undefined;
}

export interface PrometheusSink extends Sink {
  readonly registry: MetricsRegistry;
}

/** Counts for Prometheus. Rejects with a ConfigError when `prom-client` is not installed. */
export async function prometheusSink(options: PrometheusSinkOptions = {}): Promise<PrometheusSink> {
  const { Counter, Gauge, Histogram, Registry } = await loadClient();
  const registry = (options.registry ?? new Registry()) as InstanceType<typeof Registry>;
  const counters = new Map<MetricName, InstanceType<typeof Counter>>();
  const histograms = new Map<MetricName, InstanceType<typeof Histogram>>();
  let hub: GaugeSource | undefined;
  const gauges = {
    http_in_flight: () => hub?.snapshot().inFlight,
    http_waiting: () => hub?.snapshot().waiting,
  };
  for (const [name, { kind, labels, about }] of Object.entries(METRICS) as [MetricName, MetricSpec][]) {
    const config = { name, help: about, labelNames: labels, registers: [registry] };
    if (kind === "counter") counters.set(name, new Counter(config));
    else if (kind === "histogram") histograms.set(name, new Histogram({ ...config, buckets: DELAY_BUCKETS_MS }));
    else {
      const read = gauges[name as keyof typeof gauges];
      new Gauge({
        ...config,
        collect() {
          this.set(read() ?? 0);
        },
      });
    }
  }
  const recorder: MetricRecorder = {
    count: (name, by, labels) => counters.get(name)?.inc({ ...labels }, by),
    observe: (name, value, labels) => histograms.get(name)?.observe({ ...labels }, value),
  };
  const collector = new MetricCollector(recorder);
  return {
    name: "prometheus",
    registry,
    take: event => collector.take(event),
    watch: source => {
      hub = source;
    },
  };
}

async function loadClient() {
  try {
    return await import("prom-client");
  } catch (cause) {
    const message = "metrics for Prometheus need their library: npm install prom-client";
    throw new ConfigError([{ where: "prometheusSink", path: "", message }], { cause });
  }
}
