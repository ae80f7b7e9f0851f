import type { SqlParameter } from "../../../stores/postgres/postgres-driver.ts";
import type { DoneReason } from "../../reason.ts";
import type { AttemptRecord } from "../manifest.ts";
import type { DownloadedFile } from "../manifest-files.ts";
import { attemptPart } from "./attempt-values.ts";
import { NOW_MS } from "./postgres-clock.ts";

type Statement = readonly [parts: readonly string[], result: string, parameters: readonly SqlParameter[]];

/**
 * A statement for `PostgresWorker.apply` that records a file with its source and its request. If the work has no further
 * files, it also records that the work is done. The result has the file with these bytes in the manifest: another worker
 * may have stored them first. It also has the names of the partial files that are no longer needed. All parts see the rows
 * from before the statement, and no two of them change the same row.
 */
export function finishStatement(
  run: number,
  reason: DoneReason,
  downloaded: DownloadedFile,
  attempt: AttemptRecord | undefined,
): Statement {
  const { sha256, path, bytes, mediaType, flag, replaces, urlHash, etag, lastModified } = downloaded;
  const { url, resolver, licence, version, displaced, role = "article", ofSeveral } = downloaded;
  const parameters: SqlParameter[] = [];
  /** Adds a parameter, from `$3` on. `apply` adds `$1` and `$2` itself. */
  const bind = (value: SqlParameter | undefined, type = "text") => `$${parameters.push(value ?? null) + 2}::${type}`;
  const [file, place, address, name] = [bind(sha256), bind(urlHash), bind(url), bind(resolver)];
  // PostgreSQL refuses a parameter that no part uses, so each is added where it is used.
  const mainFileColumns = () =>
    `sha256 = ${file}, url = ${address}, resolver = ${name}, licence = ${bind(licence)}, version = ${bind(version)}`;
  const ofWork = "work IN (SELECT id FROM changed)";
  const newPath = bind(path);
  // A file whose path the new one gets: it is displaced, or it was missing. Of several files, also a supplement that has
  // changed: the earlier one is no longer a file of the work.
  const isReplaced = `files.path = ${newPath}${ofSeveral === undefined ? "" : ` OR work_files.url = ${address} AND role <> 'article'`}`;
  const parts = [
    `stored AS (INSERT INTO files (sha256, path, bytes, media_type, added_ms, flag)
       SELECT ${file}, ${newPath}, ${bind(bytes, "bigint")}, ${bind(mediaType)}, ${NOW_MS}, ${bind(flag)} FROM changed
       ON CONFLICT (sha256) DO UPDATE SET
         path = CASE WHEN files.path = ${bind(replaces)} THEN excluded.path ELSE files.path END
       RETURNING sha256, path, bytes, media_type, flag)`,
    `source AS (INSERT INTO sources (place, sha256, etag, last_modified, run)
       SELECT ${place}, ${file}, ${bind(etag)}, ${bind(lastModified)}, ${bind(run, "bigint")} FROM changed
       ON CONFLICT (place) DO UPDATE SET sha256 = excluded.sha256, etag = excluded.etag,
         last_modified = excluded.last_modified, run = excluded.run)`,
    `listed AS (INSERT INTO work_files (work, role, sha256, url, resolver)
       SELECT id, ${bind(role)}, ${file}, ${address}, ${name} FROM changed
       ON CONFLICT (work, sha256) DO UPDATE SET role = excluded.role, url = excluded.url, resolver = excluded.resolver
       WHERE excluded.role = 'article')`,
    `replaced AS (DELETE FROM work_files USING files WHERE ${ofWork} AND files.sha256 = work_files.sha256
       AND work_files.sha256 <> ${file} AND (${isReplaced}))`,
  ];
  if (attempt !== undefined) parts.push(attemptPart({ run, attempt }, parameters));
  if (displaced !== undefined)
    parts.push(
      `moved AS (UPDATE files SET path = ${bind(displaced.path)} WHERE sha256 = ${bind(displaced.sha256)}
         AND EXISTS (SELECT 1 FROM changed))`,
    );
  if (ofSeveral === undefined)
    parts.push(
      `gone AS (DELETE FROM parts WHERE ${ofWork} RETURNING file)`,
      `done AS (UPDATE works SET state = 'done', reason = ${bind(reason)}, message = NULL, ${mainFileColumns()},
         ended_ms = ${NOW_MS}, taken_by = NULL, progress = NULL, inherited = NULL WHERE id IN (SELECT id FROM changed))`,
    );
  else {
    parts.push(`gone AS (DELETE FROM parts WHERE ${ofWork} AND place = ${place} RETURNING file)`);
    if (ofSeveral === "main")
      parts.push(`main AS (UPDATE works SET ${mainFileColumns()} WHERE id IN (SELECT id FROM changed))`);
  }
  return [parts, "SELECT *, ARRAY(SELECT file FROM gone) AS parts FROM stored", parameters];
}
