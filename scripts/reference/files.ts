import { DatabaseSync } from "node:sqlite";
import { MANIFEST_FORMAT } from "../../src/harvest/manifest/sqlite/sqlite-manifest-file.ts";
import { CACHE_FORMAT } from "../../src/http/cache/cache-schema.ts";
import type { DatabaseFormat } from "../../src/stores/sqlite/database-file.ts";
import { STORE_FORMAT } from "../../src/stores/sqlite/sqlite-connection.ts";
import { RUN_FILES } from "../../src/telemetry/reading/telemetry-file.ts";
import { TABLE_OF, TELEMETRY_FORMAT } from "../../src/telemetry/sqlite-tables.ts";
import { differingNames } from "./differing-names.ts";
import { code, page, table } from "./markdown.ts";
import { CACHE_TABLES, MANIFEST_TABLES, STORE_TABLES, type TableDescription } from "./table-columns.ts";

const FILES = [
  [
    "`papers/` (`--out`)",
    "`docstokg run`",
    "the downloaded files; also the manifest, partial files and telemetry, unless flags say otherwise",
  ],
  ["`papers/manifest.sqlite`", "`docstokg run`", "works, attempts and files ([tables](#manifest))"],
  ["`papers/.parts/`", "`docstokg run`", "partial files; a complete file is moved to its path"],
  [
    `\`papers/${RUN_FILES.jsonl}\``,
    "`docstokg run`",
    "[events](events.md), one per line; above 64 MiB it is renamed, and the newest 8 are kept",
  ],
  [code(RUN_FILES.sqlite), "`openRunTelemetry`, `sqliteSink`", "the same events, in [tables](#telemetry)"],
  [
    "`$XDG_RUNTIME_DIR/docstokg/limits.db`",
    "store `multiprocess`",
    "shared limits and circuits ([tables](#shared-store)); if the variable is not set: `<temporary folder>/docstokg-<uid>/docstokg/limits.db`",
  ],
  ["a file of your choice", "store `sqlite:<file>`", "the same"],
  [
    "`<store file>.orders`",
    "SQLite stores",
    "empty; a new modification time notifies the processes of an operator's order",
  ],
  ["`<file>.damaged-<time>`", "stores and caches", "a damaged file, moved aside; delete it when you have looked at it"],
  ["a file of your choice", "cache `sqlite:<file>`", "stored responses ([tables](#cache))"],
  ["`<database>-wal`, `<database>-shm`", "SQLite", "parts of the database while it is open: copy them with it"],
  ["`ontologies/`, `ontologies.lock.json`", "`ontofetch`", "see [ontofetch](ontofetch.md)"],
] as const;

/** `docs/reference/files.md`: files that the programs write, and the tables in them. */
export function filesPage(): string {
  return page(
    "Files and tables on disk",
    "Files that hold state or telemetry are readable by their owner only. Keys that the hub adds to requests are stored nowhere; a cached response body may repeat one. A file that belongs to another program is never changed, moved or overwritten.",
    table(
      ["file", "written by", "content"],
      FILES.map(row => [...row]),
    ),
    "A SQLite file has the mark of its kind in `PRAGMA application_id`, and the version of its tables in `PRAGMA user_version`. A newer version of docstokg migrates an older file when it opens it. An older version refuses a newer file.",
    "## Manifest",
    formatLine(MANIFEST_FORMAT),
    "A PostgreSQL manifest has the same tables in a schema of its own, with two differences: `taken_by` names a row of `workers`, and `runs` has the settings that workers need. The tables `workers`, `commits` and `docstokg_manifest` exist only there.",
    ...sections(MANIFEST_FORMAT, MANIFEST_TABLES),
    "## Shared store",
    formatLine(STORE_FORMAT),
    "Only `breaker_cooldowns` is meant for other tools. The others may change with each version.",
    ...sections(STORE_FORMAT, STORE_TABLES),
    "## Cache",
    formatLine(CACHE_FORMAT),
    ...sections(CACHE_FORMAT, CACHE_TABLES),
    "## Telemetry",
    formatLine(TELEMETRY_FORMAT),
    "A column has the name of the [event field](events.md) that it holds, and is null for events without this field. `seq` numbers the rows. `run_summary` has one row for each run that was closed, with the main numbers of the [report](metrics.md#numbers-of-the-report) and all of them as JSON in `summary`.",
    telemetryTables(),
  );
}

function formatLine({ applicationId, migrations }: DatabaseFormat): string {
  const mark = String.fromCharCode(...[24, 16, 8, 0].map(shift => (applicationId >> shift) & 0xff));
  return `Mark: \`0x${applicationId.toString(16)}\` ("${mark}"). Version: ${migrations.length}.`;
}

/** Creates the tables in memory, as opening a new file does, and describes what is there. */
function sections(format: DatabaseFormat, described: Readonly<Record<string, TableDescription>>): readonly string[] {
  const tables = tablesOf(format);
  const missing = [...tables.keys()].filter(name => !Object.hasOwn(described, name));
  if (missing.length > 0) throw new Error(`table-columns.ts does not describe the table ${missing.join(", ")}`);
  return Object.entries(described).map(([name, { about, columns }]) => {
    const existing = tables.get(name) ?? [];
    const names = existing.map(column => column.name);
    const wrong = differingNames(names, Object.keys(columns));
    if (wrong.length > 0) throw new Error(`table-columns.ts differs from the table ${name}: ${wrong.join(", ")}`);
    const rows = existing.map(column => [code(column.name), column.type, columns[column.name] ?? ""]);
    return `### ${code(name)}\n\n${about}\n\n${table(["column", "type", "meaning"], rows)}`;
  });
}

function tablesOf({ migrations }: DatabaseFormat) {
  using db = new DatabaseSync(":memory:");
  for (const migration of migrations) db.exec(migration);
  const names = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").all();
  return new Map(
    names.map(row => {
      const name = String(row["name"]);
      const columns = db.prepare("SELECT name, type FROM pragma_table_info(?)").all(name);
      return [name, columns.map(column => ({ name: String(column["name"]), type: String(column["type"]) }))] as const;
    }),
  );
}

function telemetryTables(): string {
  const rows = [...tablesOf(TELEMETRY_FORMAT)].map(([name, columns]) => {
    const events = Object.entries(TABLE_OF).flatMap(([type, of]) => (of === name ? code(type) : []));
    return [code(name), events.join(", "), columns.map(column => code(column.name)).join(", ")];
  });
  return table(["table", "events", "columns"], rows);
}
