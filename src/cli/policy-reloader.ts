import { ConfigError } from "../errors.ts";
import { FileWatch } from "../files/file-watch.ts";
import type { PolicyChange } from "../policy/policy-changes.ts";
import { systemTime } from "../time/system-time.ts";
import { formatCount } from "./output/format.ts";
import type { Flags, Io } from "./program.ts";
import { usageError } from "./usage-error.ts";

/** The environment variables that name the user's policy files. */
const FILE_VARIABLES = ["DOCSTOKG_RLIMITS_YAML", "DOCSTOKG_BREAKERS_YAML", "DOCSTOKG_IDENTITIES_YAML"];
/** How many changes are printed. The others are only counted: a new file may change thousands of values. */
const CHANGES_SHOWN = 50;

export const WATCH_POLICY_FLAG = ["--watch-policy", "reload the policy when its files change"] as const;

/** What a running command reloads, and where it prints the result. */
export interface ReloadTarget {
  readonly reload: () => Promise<readonly PolicyChange[]>;
  /** Prints a line. */
  readonly log: (line: string) => void;
}

/**
 * Reloads the policy of a running command at SIGHUP, and with `--watch-policy` when a file of the policy changes. An
 * invalid policy is reported, and the old one stays in force. One reload runs at a time. Requests that come during a
 * reload cause one more.
 */
export class PolicyReloader implements Disposable {
  readonly #stops: (() => void)[] = [];
  #target: ReloadTarget | undefined;
  /** The cause of the next reload. */
  #requested: string | undefined;
  #isReloading = false;

  /**
   * Opened before the policy is loaded for the first time, so that no change is missed.
   * @param files other files that a command reads its policy from
   * @throws ConfigError when `--watch-policy` has no file to watch.
   */
  static async open(flags: Flags, io: Io, files: readonly string[] = []): Promise<PolicyReloader> {
    const reloader = new PolicyReloader();
    const stop = io.onHangup?.(() => reloader.#request("SIGHUP"));
    if (stop !== undefined) reloader.#stops.push(stop);
    try {
      if (flags["watchPolicy"] === true) await reloader.#watch(io, files);
    } catch (error) {
      reloader[Symbol.dispose]();
      throw error;
    }
    return reloader;
  }

  /** Carries out requests from now on, also one that came earlier. */
  start(target: ReloadTarget): void {
    this.#target = target;
    this.#next();
  }

  [Symbol.dispose](): void {
    this.#target = undefined;
    for (const stop of this.#stops.splice(0)) stop();
  }

  async #watch({ env, stderr, time = systemTime }: Io, files: readonly string[]): Promise<void> {
    const named = FILE_VARIABLES.flatMap(name => env[name] || []);
    const watched = [...files, ...named];
    if (watched.length === 0)
      throw usageError("--watch-policy", `no policy file to watch; name one with ${FILE_VARIABLES.join(", ")}`);
    const watch = await FileWatch.open(watched, {
      time,
      onChange: () => this.#request("--watch-policy"),
      onTrouble: ({ message }) => stderr.write(`--watch-policy: changes are no longer reported: ${message}\n`),
    }).catch((error: NodeJS.ErrnoException) => {
      if (error.code === undefined) throw error;
      throw usageError("--watch-policy", `cannot watch ${watched.join(", ")} (${error.code})`, { cause: error });
    });
    this.#stops.push(() => watch[Symbol.dispose]());
  }

  #request(cause: string): void {
    this.#requested = cause;
    this.#next();
  }

  #next(): void {
    const [target, cause] = [this.#target, this.#requested];
    if (target === undefined || cause === undefined || this.#isReloading) return;
    this.#requested = undefined;
    this.#isReloading = true;
    target
      .reload()
      .then(
        changes => changeLines(changes, cause),
        error => {
          if (!(error instanceof ConfigError)) throw error;
          return [`policy not reloaded (${cause}); the old policy stays in force:`, indented(error.message)];
        },
      )
      // An unexpected error ends the reload, not the command.
      .catch(error => [`policy not reloaded (${cause}): ${String(error)}`])
      .then(lines => {
        for (const line of lines) if (this.#target !== undefined) target.log(line);
        this.#isReloading = false;
        this.#next();
      });
  }
}

/** No line if a file was saved without a change. */
function changeLines(changes: readonly PolicyChange[], cause: string): readonly string[] {
  if (changes.length === 0) return cause === "SIGHUP" ? ["policy reloaded (SIGHUP): nothing changed"] : [];
  const more = changes.length - CHANGES_SHOWN;
  return [
    `policy reloaded (${cause}): ${formatCount(changes.length, "value")} changed`,
    ...changes.slice(0, CHANGES_SHOWN).map(changeLine),
    ...(more > 0 ? [`  and ${more} more`] : []),
  ];
}

function changeLine({ setting, old = "not set", new: now = "not set", source }: PolicyChange): string {
  return `  ${setting}: ${old} -> ${now} (${source})`;
}

function indented(text: string): string {
  return text.replaceAll(/^/gm, "  ");
}
