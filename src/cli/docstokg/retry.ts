import { existsSync } from "node:fs";
import { nearest } from "../../core/text/nearest.ts";
import { ConfigError } from "../../errors.ts";
import { isReason, REASONS, type Reason } from "../../harvest/reason.ts";
import type { CliCommand } from "../program.ts";
import { recordedCommand } from "./recorded-command.ts";
import { runSession } from "./run-session.ts";
import { addRunFlags, runSettingsOf } from "./run-settings.ts";
import { exitCodeOf, summaryJson, summaryText } from "./run-summary.ts";

/** `docstokg retry`: what an earlier run left. */
export const retry: CliCommand = {
  name: "retry",
  summary: "go on with what is unfinished in a manifest, and with what failed",
  configure: command => {
    command
      .option("--failed", "also works that failed")
      .option("--reason <code>", "of those that failed, only these: no-copy, breaker-open, …");
    addRunFlags(command);
  },
  run: async (_, options, io) => {
    const settings = runSettingsOf(options);
    const reason = reasonOf(options["reason"] as string | undefined);
    if (!existsSync(settings.manifest)) throw missingManifestError(settings.manifest);
    const includesFailed = options["failed"] === true || reason !== undefined;
    const outcome = await runSession({
      settings,
      options,
      io,
      command: recordedCommand("retry", options),
      feed: async ({ run, tally }) => {
        tally.wanted += run.addUnfinished(includesFailed ? { reason } : undefined);
        return true;
      },
    });
    if (outcome.tally.wanted === 0) io.stderr.write(nothingToDoText(includesFailed, reason));
    io.stdout.write(settings.isJson ? summaryJson(outcome, settings) : summaryText(outcome, settings));
    return exitCodeOf(outcome);
  },
};

function nothingToDoText(includesFailed: boolean, reason: Reason | undefined): string {
  if (!includesFailed) return "Nothing is unfinished; --failed tries again what failed.\n";
  return `Nothing is unfinished, and nothing has failed${reason === undefined ? "" : ` as ${reason}`}.\n`;
}

export function missingManifestError(path: string): ConfigError {
  const message = `there is no manifest ${path}; name its folder with --out, or the file with --manifest`;
  return new ConfigError([{ where: "--manifest", path: "", message }]);
}

function reasonOf(text: string | undefined): Reason | undefined {
  if (text === undefined || isReason(text)) return text;
  const all = Object.keys(REASONS);
  const near = nearest(text, all);
  const message = `${JSON.stringify(text)} is none of ${all.join(", ")}${near === undefined ? "" : `; did you mean ${near}?`}`;
  throw new ConfigError([{ where: "--reason", path: "", message }]);
}
