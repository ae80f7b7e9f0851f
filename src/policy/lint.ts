import { entryFindings } from "./entry-findings.ts";
import type { PolicyFinding } from "./finding.ts";
import { keyFindings } from "./key-findings.ts";
import { limitFindings } from "./limit-findings.ts";
import type { LoadedPolicy } from "./load.ts";
import { looserFindings } from "./looser-findings.ts";
import { looserSettings } from "./looser-settings.ts";
import { similarHostFindings } from "./similar-host-findings.ts";
import { staleFindings } from "./stale-findings.ts";

/**
 * What `policy check` reports beside errors: valid settings that probably do not have the intended effect, and hints.
 * @param nowMs the time, to judge the age of the numbers; without it their age is not judged
 */
export function lintPolicy(policy: LoadedPolicy, nowMs?: number): readonly PolicyFinding[] {
  return [
    ...limitFindings(policy),
    ...entryFindings(policy),
    ...similarHostFindings(policy),
    ...looserFindings(policy),
    ...looserSettings(policy),
    ...keyFindings(policy),
    ...(nowMs === undefined ? [] : staleFindings(policy, nowMs)),
  ];
}
