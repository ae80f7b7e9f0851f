import { join } from "node:path";
import type { Dispatcher } from "undici";
import type { Hub } from "../http/hub.ts";
import type { HubEvent, NetworkOptions } from "../http/hub-options.ts";
import type { Environment } from "../policy/environment.ts";
import type { PolicyChange } from "../policy/policy-changes.ts";
import { systemTime } from "../time/system-time.ts";
import type { Time } from "../time/time.ts";
import { LockWriter } from "./lock-writer.ts";
import type { OntofetchSettings } from "./ontofetch-settings.ts";
import { createOntologyHub, reloadOntologyHub } from "./ontology-hub.ts";
import type { OntologyStore } from "./ontology-store.ts";
import { openOntologyStore } from "./open-ontology-store.ts";
import { type PlanItem, Planner } from "./planner.ts";
import type { PullOptions, PullResult } from "./pull-result.ts";
import { PullRun } from "./pull-run.ts";
import { Puller } from "./puller.ts";
import { appendRateUsage, RATE_USAGE_FILE, RateUsageCounter } from "./rate-usage.ts";
import { RedirectFollower } from "./redirect-follower.ts";
import type { ListedVersion, Source } from "./resolver.ts";
import { type LimitWait, WaitReporter } from "./wait-reporter.ts";
import { workFolderOf } from "./work-folder.ts";

/** Options of `Ontofetch.open`. */
export interface OntofetchOptions {
  /** Environment variables: API keys, identities and `DOCSTOKG_*`. Usually `process.env`. */
  readonly env: Environment;
  /**
   * Network options of the hub, such as `connectTo`, `tls` and timeouts. `allow_private` of the settings replaces
   * `allowPrivate`.
   */
  readonly network?: NetworkOptions | undefined;
  /**
   * Sends the requests instead of the hub's own agent, for example undici's `ProxyAgent` or `EnvHttpProxyAgent`. It
   * replaces `network`; `allow_private` cannot be checked then, because the proxy resolves the names. `close` does not
   * close it.
   * @default the hub's own agent
   */
  readonly dispatcher?: Dispatcher | undefined;
  /** The clock and the timers; tests pass `FakeTime`. @default the clocks of this machine */
  readonly time?: Time | undefined;
  /** Aborts every request and every wait. `plan` and `pull` then reject with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Receives every event of the hub. @default no listener */
  readonly listener?: ((event: HubEvent) => void) | undefined;
  /** Called while a file is downloaded; `totalBytes` is undefined if the server does not announce the length. */
  readonly onBytes?: ((id: string, bytes: number, totalBytes: number | undefined) => void) | undefined;
  /** Called when an interrupted download continues; `bytes` is what was received before. */
  readonly onResume?: ((id: string, bytes: number, totalBytes: number | undefined) => void) | undefined;
  /** Called when requests wait for a limit or a cooldown: after 5 seconds, then once a minute. */
  readonly onLimitWait?: ((wait: LimitWait) => void) | undefined;
  /** Called when the pull of an ontology waits for another process that pulls the same one. */
  readonly onWait?: ((id: string) => void) | undefined;
}

/**
 * Plans and pulls the ontologies of `sources.yaml`. Call `close` at the end: it closes connections and writes the rate
 * usage that `ontofetch rl doctor` reads.
 */
export class Ontofetch {
  /** The settings it was opened with. */
  readonly settings: OntofetchSettings;
  /** The stored versions. */
  readonly store: OntologyStore;
  readonly #hub: Hub;
  readonly #usage: RateUsageCounter;
  readonly #options: OntofetchOptions;
  readonly #time: Time;
  readonly #follower: RedirectFollower;

  /** Use `Ontofetch.open`. */
  private constructor(
    settings: OntofetchSettings,
    options: OntofetchOptions,
    parts: { readonly hub: Hub; readonly usage: RateUsageCounter; readonly store: OntologyStore },
  ) {
    const { hub, usage, store } = parts;
    this.settings = settings;
    this.store = store;
    this.#options = options;
    this.#time = options.time ?? systemTime;
    this.#hub = hub;
    this.#usage = usage;
    this.#follower = new RedirectFollower(hub);
  }

  /**
   * Opens the hub, its cache and its shared store.
   * @throws ConfigError if a folder cannot be created, or a package is not installed.
   */
  static async open(settings: OntofetchSettings, options: OntofetchOptions): Promise<Ontofetch> {
    const { env, network, dispatcher, time, listener } = options;
    const usage = new RateUsageCounter();
    const listeners = listener === undefined ? [usage.listen] : [usage.listen, listener];
    const store = await openOntologyStore(settings.store, time ?? systemTime);
    try {
      const hub = await createOntologyHub(settings, { env, network, dispatcher, time, listeners });
      return new Ontofetch(settings, options, { hub, usage, store });
    } catch (error) {
      store[Symbol.dispose]();
      throw error;
    }
  }

  /**
   * Asks the services which files a pull would fetch; downloads nothing. One item for each source, in the same order.
   * @param probes whether a HEAD request to each file asks for its size and validators. @default true
   */
  plan(sources: readonly Source[], probes = true): Promise<readonly PlanItem[]> {
    const { env, signal } = this.#options;
    const planner = new Planner({ hub: this.#hub, follower: this.#follower, env, time: this.#time, signal });
    return planner.plan(sources, { probes });
  }

  /**
   * Downloads, checks and stores the ontologies that are new or changed, and those that they import if the source says
   * so. The lockfile is updated after each file. A failed source is a result, not an error. After an abort the store
   * stays valid, and the next pull resumes partial files.
   */
  async pull(sources: readonly Source[], options: PullOptions = {}): Promise<readonly PullResult[]> {
    const { onBytes, onResume, onWait, signal } = this.#options;
    await this.store.prepare();
    const puller = new Puller({
      follower: this.#follower,
      store: this.store,
      time: this.#time,
      check: this.settings.check,
      maxFileBytes: this.settings.maxFileBytes,
      isAccepted: options.accept,
      signal,
      onBytes,
      onResume,
      onWait,
    });
    const lockWriter = new LockWriter(this.settings.lockfile, this.#time, signal);
    const plan = (wanted: readonly Source[]) => this.plan(wanted, false);
    using _waits = this.#reportWaits();
    return await new PullRun(
      { settings: this.settings, store: this.store, puller, lockWriter, plan, signal },
      options,
    ).run(sources);
  }

  #reportWaits(): Disposable {
    const { onLimitWait } = this.#options;
    const reporter = onLimitWait && new WaitReporter(() => this.#hub.snapshot(), this.#time, onLimitWait);
    reporter?.start();
    return { [Symbol.dispose]: () => reporter?.stop() };
  }

  /**
   * The versions of an ontology that its service lists, newest first.
   * @throws DownloadError if the service lists no versions or does not respond.
   */
  versions(source: Source): Promise<readonly ListedVersion[]> {
    const { env, signal } = this.#options;
    return new Planner({ hub: this.#hub, follower: this.#follower, env, time: this.#time, signal }).versions(source);
  }

  /**
   * Applies the rate limits of new settings and of the policy files to requests from now on. Sources, folders and checks
   * stay those that it was opened with.
   * @returns every limit that changed; empty when none did
   * @throws ConfigError, and changes nothing, when a file is invalid or `sharedDir` is another folder.
   */
  async reload(settings: OntofetchSettings): Promise<readonly PolicyChange[]> {
    return reloadOntologyHub(this.#hub, this.settings, settings, this.#options.env);
  }

  /**
   * Closes the hub and the store, and appends the rate usage of this run for `ontofetch rl doctor`.
   * @param command the name under which the usage is recorded, such as `pull`.
   */
  async close(command: string): Promise<void> {
    const { signal } = this.#options;
    this.store[Symbol.dispose]();
    await (signal?.aborted ? this.#hub.destroy(signal.reason) : this.#hub.close());
    const at = new Date(this.#time.wallMs()).toISOString();
    await appendRateUsage(rateUsageFile(this.settings), { at, pid: process.pid, command, keys: this.#usage.keys() });
  }
}

/** The file with the rate usage of past runs: in `sharedDir`, or else in the work folder of the store. */
export function rateUsageFile({ sharedDir, store }: Pick<OntofetchSettings, "sharedDir" | "store">): string {
  return join(sharedDir ?? workFolderOf(store), RATE_USAGE_FILE);
}
