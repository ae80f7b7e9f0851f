import { nearest } from "../../core/text/nearest.ts";
import { FAILURE_REASONS, type Reason } from "../../harvest/reason.ts";
import { loadPolicy } from "../../policy/load.ts";
import type { CommandModule } from "../program.ts";
import { usageError } from "../usage-error.ts";
import { openExistingManifest } from "./path-flags.ts";
import { policySources } from "./policy-flags.ts";
import { recordedCommand } from "./recorded-command.ts";
import { continuedFlags, RUN_FLAG_DEFAULTS } from "./run-flags.ts";
import { runSession } from "./run-session.ts";
import { addRunFlags, checkFolders, runSettingsOf } from "./run-settings.ts";
import { exitCodeOf, printSummary } from "./run-summary.ts";
import { joinableSettings } from "./shared-settings.ts";

/** `docstokg retry`: continues unfinished works of earlier runs, with the settings of the latest one. */
export const retry: CommandModule = {
  configure: command => {
    command
      .option("--failed", "also retry failed works")
      .option(
        "--reason <code>",
        "also retry failed works with this reason, e.g. no-copy, breaker-open; filtered ignores the filters of the run",
      );
    addRunFlags(command, { quiet: "do not print the progress", continues: true });
  },
  run: async (_, own, io) => {
    const given = runSettingsOf({ ...RUN_FLAG_DEFAULTS, ...own }, io);
    const reason = reasonOf(own["reason"] as string | undefined);
    if (own["failed"] === true && reason !== undefined)
      throw usageError("--failed", "has no effect with --reason, which already selects failed works");
    checkFolders(given);
    const flags = continuedFlags(await latestFlags(given.manifest), own, reason !== "filtered");
    const settings = runSettingsOf(flags, io);
    const includesFailed = flags["failed"] === true || reason !== undefined;
    const outcome = await runSession({
      settings,
      flags,
      io,
      command: recordedCommand("retry", own),
      sharedSettings: joinableSettings(settings, flags, await loadPolicy(policySources(flags, io)), io),
      listWorks: async ({ run, counts }) => {
        counts.wanted += await run.addUnfinished(includesFailed ? { reason } : undefined);
        return true;
      },
    });
    if (outcome.counts.wanted === 0) io.stderr.write(nothingToDoText(includesFailed, reason));
    printSummary(outcome, settings, io);
    return exitCodeOf(outcome);
  },
};

/** The flags of the latest run of the manifest. */
async function latestFlags(name: string): Promise<string | undefined> {
  const manifest = await openExistingManifest(name);
  try {
    return await manifest.reports.latestFlags();
  } finally {
    await manifest.close();
  }
}

function nothingToDoText(includesFailed: boolean, reason: Reason | undefined): string {
  if (!includesFailed) return "No unfinished works; --failed retries failed works.\n";
  return `No unfinished works, and no failed works${reason === undefined ? "" : ` with reason ${reason}`}.\n`;
}

function reasonOf(text: string | undefined): Reason | undefined {
  if (text === undefined) return undefined;
  const reason = FAILURE_REASONS.find(each => each === text);
  if (reason !== undefined) return reason;
  const near = nearest(text, FAILURE_REASONS);
  const hint = near === undefined ? "" : `; did you mean ${near}?`;
  const expected = `expected one of ${FAILURE_REASONS.join(", ")}`;
  throw usageError("--reason", `${JSON.stringify(text)} is not a reason of failed works; ${expected}${hint}`);
}
