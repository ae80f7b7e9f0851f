import type { SqlParameter } from "../../../stores/postgres/postgres-driver.ts";
import { redactedUrl } from "../../redacted-url.ts";
import type { AttemptOfRun, AttemptRecord } from "../attempt-record.ts";
import { NOW_MS } from "./postgres-clock.ts";

/** The columns of `attempts` that `attemptValues` returns. */
export const ATTEMPT_COLUMNS = "run, step, resolver, url, status, reason, message, bytes, sha256, elapsed_ms, ended_ms";

/** Adds a parameter to a statement. Returns its name there, with its type. */
export type BindParameter = (value: SqlParameter, type: "text" | "bigint" | "integer") => string;

/** The values of an attempt for a statement, without the work. */
export function attemptValues(run: number, attempt: AttemptRecord, bind: BindParameter): string {
  const { step, resolver, url, status = null, reason, message = null, bytes = 0, sha256 = null } = attempt;
  return [
    bind(run, "bigint"),
    bind(step, "text"),
    bind(resolver, "text"),
    bind(redactedUrl(url), "text"),
    bind(status, "integer"),
    bind(reason, "text"),
    bind(message, "text"),
    bind(bytes, "bigint"),
    bind(sha256, "text"),
    bind(Math.round(attempt.elapsedMs), "bigint"),
    NOW_MS,
  ].join(", ");
}

/**
 * A part for `PostgresWorker.apply` that records an attempt of the work.
 * @param parameters of the statement, from `$3` on; the values of the attempt are added to them
 */
export function attemptPart({ run, attempt }: AttemptOfRun, parameters: SqlParameter[]): string {
  const values = attemptValues(run, attempt, (value, type) => `$${parameters.push(value) + 2}::${type}`);
  return `attempted AS (INSERT INTO attempts (work, ${ATTEMPT_COLUMNS}) SELECT id, ${values} FROM changed)`;
}
