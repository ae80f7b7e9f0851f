/** The only file that uses `prom-client`, an optional package that is loaded when a sink is made. */
import type { RegistryContentType } from "prom-client";
import { ConfigError } from "../../errors.ts";
import type { StartedCall } from "../../http/tracing.ts";
import { gaugeOf } from "../gauges.ts";
import { MetricCollector } from "../metric-collector.ts";
import {
  checkPrefix,
  DELAY_BUCKETS_S,
  exportedName,
  labelsOf,
  METRICS,
  type MetricName,
  type MetricOf,
  type MetricRecorder,
  type MetricSpec,
} from "../metrics.ts";
import type { GaugeSource, Sink, SinkOwner } from "../sink.ts";
import { CallExemplars, type ExemplarLabels } from "./call-exemplars.ts";
import { loadOpenTelemetry } from "./load-opentelemetry.ts";

/** The part of a `prom-client` Registry that is used here. */
export interface MetricsRegistry {
  /** The content type of `metrics()`. */
  readonly contentType: string;
  /** All metrics in the text format of Prometheus. */
  metrics(): Promise<string>;
}

/** Options of `prometheusSink`. */
export interface PrometheusSinkOptions {
  /** The `prom-client` Registry that the metrics are added to. @default a new one */
  readonly registry?: MetricsRegistry | undefined;
  /** The beginning of every name: letters, digits and `_`. @default "docstokg_" */
  readonly prefix?: string | undefined;
  /**
   * Adds the trace of the caller to the observations of histograms, if a sampled OpenTelemetry span was active when the
   * call began. Exemplars are part of OpenMetrics only: a registry of your own needs that content type
   * (`registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE)`). Needs the package `@opentelemetry/api`. @default false
   */
  readonly exemplars?: boolean | undefined;
}

/** A sink and the registry that its metrics are in. */
export interface PrometheusSink extends Sink {
  /** For `serveMetrics`, or for a server of your own. */
  readonly registry: MetricsRegistry;
}

/**
 * Counts events as Prometheus metrics. Rejects with a ConfigError when `prom-client` is not installed, or, with
 * `exemplars`, when `@opentelemetry/api` is not. Rejects with a RangeError for an invalid prefix, and for a registry that
 * cannot have exemplars.
 */
export async function prometheusSink(options: PrometheusSinkOptions = {}): Promise<PrometheusSink> {
  checkPrefix(options.prefix);
  const client = await loadClient();
  const { Registry } = client;
  const { exemplars: enableExemplars = false } = options;
  const openMetrics = Registry.OPENMETRICS_CONTENT_TYPE;
  const own = new Registry<RegistryContentType>();
  if (enableExemplars) own.setContentType(openMetrics);
  const registry = (options.registry ?? own) as InstanceType<typeof Registry>;
  if (enableExemplars && registry.contentType !== openMetrics)
    throw new RangeError(
      `exemplars need a registry with the content type ${openMetrics}, not ${registry.contentType}: call setContentType`,
    );
  const exemplars = enableExemplars ? new CallExemplars(await loadOpenTelemetry("prometheusSink")) : undefined;
  let hub: GaugeSource | undefined;
  let owner: SinkOwner | undefined;
  const { counters, histograms } = registerMetrics(client, registry, {
    prefix: options.prefix,
    enableExemplars,
    hub: () => hub,
    owner: () => owner,
  });
  /** The trace of the event that is being counted. */
  let exemplarLabels: ExemplarLabels | undefined;
  const observe = (histogram: Histogram, labels: ReturnType<typeof labelsOf>, seconds: number) => {
    if (!enableExemplars) histogram.observe(labels, seconds);
    else
      histogram.observe({ labels, value: seconds, ...(exemplarLabels && { exemplarLabels: { ...exemplarLabels } }) });
  };
  const recorder: MetricRecorder = {
    count: (name, labels) => counters.get(name)?.inc(labelsOf(name, labels)),
    observe: (name, ms, labels) => {
      const histogram = histograms.get(name);
      if (histogram !== undefined) observe(histogram, labelsOf(name, labels), ms / 1000);
    },
  };
  const collector = new MetricCollector(recorder);
  return {
    name: "prometheus",
    registry,
    attach: to => {
      owner = to;
    },
    ...(exemplars && { callStarted: ({ callId }: StartedCall) => exemplars.callStarted(callId) }),
    take: event => {
      exemplarLabels = exemplars?.of(event);
      collector.take(event);
    },
    watch: source => {
      hub = source;
    },
  };
}

type Client = Awaited<ReturnType<typeof loadClient>>;
type Histogram = InstanceType<Client["Histogram"]>;

interface MetricSources {
  readonly prefix: string | undefined;
  readonly enableExemplars: boolean;
  /** The hub that gauges are read from, once there is one. */
  readonly hub: () => GaugeSource | undefined;
  /** Knows what the sinks have dropped, once the sink is attached. */
  readonly owner: () => SinkOwner | undefined;
}

/** Registers every metric. Returns those that events are counted in; the others are read when they are collected. */
function registerMetrics(
  { Counter, Gauge, Histogram }: Client,
  registry: InstanceType<Client["Registry"]>,
  { prefix, enableExemplars, hub, owner }: MetricSources,
) {
  const counters = new Map<MetricName, InstanceType<typeof Counter>>();
  const histograms = new Map<MetricName, InstanceType<typeof Histogram>>();
  for (const [name, { kind, labels, about }] of Object.entries(METRICS) as [MetricName, MetricSpec][]) {
    const config = { name: exportedName(name, prefix), help: about, labelNames: labels, registers: [registry] };
    if (name === "telemetry_dropped_total") {
      new Counter({
        ...config,
        // Read from the sinks, so that a scrape shows what was dropped until now.
        collect() {
          this.reset();
          for (const [sink, dropped] of Object.entries(owner()?.dropped() ?? {})) this.inc({ sink }, dropped);
        },
      });
    } else if (kind === "counter") counters.set(name, new Counter(config));
    else if (kind === "histogram")
      histograms.set(name, new Histogram({ ...config, buckets: DELAY_BUCKETS_S, enableExemplars }));
    else {
      new Gauge({
        ...config,
        collect() {
          const source = hub();
          this.set(source === undefined ? 0 : gaugeOf(name as MetricOf<"gauge">, source));
        },
      });
    }
  }
  return { counters, histograms };
}

async function loadClient() {
  try {
    return await import("prom-client");
  } catch (cause) {
    const message = "needs the package prom-client: npm install prom-client";
    throw new ConfigError([{ where: "prometheusSink", path: "", message }], { cause });
  }
}
