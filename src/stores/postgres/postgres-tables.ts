import { StoreError } from "../../errors.ts";
import type { Queryable } from "./postgres-driver.ts";
import { literal } from "./postgres-literal.ts";
import { BUDGET_TABLES } from "./schema/budget-tables-sql.ts";
import { EXCHANGE_FUNCTIONS } from "./schema/exchange-sql.ts";
import { LEASE_LIST_FUNCTIONS } from "./schema/lease-list-sql.ts";
import { SHARED_BUDGET_FUNCTIONS } from "./schema/shared-budget-sql.ts";
import { TURN_QUEUE_FUNCTIONS } from "./schema/turn-queue-sql.ts";
import { WINDOW_LOG_FUNCTIONS } from "./schema/window-log-sql.ts";

/**
 * The SQL at index n migrates a store from version n to n + 1. Never change the tables of a released entry. All functions
 * are in the last entry, where they replace those of earlier versions. To change a function, append an entry and move the
 * functions into it.
 */
const MIGRATIONS: readonly string[] = [
  `CREATE TABLE budgets (
     key text PRIMARY KEY,
     state text NOT NULL,
     expires_us bigint NOT NULL
   );
   CREATE INDEX budgets_expired ON budgets (expires_us);
   CREATE TABLE records (
     name text COLLATE "C" PRIMARY KEY,
     record text NOT NULL,
     keep_until_us bigint NOT NULL,
     version bigint NOT NULL
   );
   CREATE INDEX records_expired ON records (keep_until_us);
   CREATE TABLE processes (
     id text PRIMARY KEY,
     seen_us bigint NOT NULL,
     exchange bigint NOT NULL
   );`,
  BUDGET_TABLES,
  // Version 2 had other functions, and one that is not used any more.
  "DROP FUNCTION IF EXISTS can_foretell;",
  // Version 3 had functions without the parameter for processes that have ended.
  "DROP FUNCTION IF EXISTS join_budget, report_use, lease;",
  // In version 4, a process that was late for its turn kept it for two seconds.
  "",
  // Version 5 could say only once whether an exchange without a reply took effect.
  "",
  // Version 6 treated a budget as lost after the clock was set back. It could also delete the row of a process that had
  // given up an exchange, so that this exchange could still take effect.
  [WINDOW_LOG_FUNCTIONS, TURN_QUEUE_FUNCTIONS, LEASE_LIST_FUNCTIONS, SHARED_BUDGET_FUNCTIONS, EXCHANGE_FUNCTIONS].join(
    "\n",
  ),
];
/** Marks the schema as a store of docstokg. */
const FORMAT_TABLE = "docstokg_store_format";
/** The SQLSTATE of a schema that has other tables. */
export const FOREIGN_TABLES = "DT001";

/**
 * Whether the schema has the table. Does not use `to_regclass`: there a connection remembers that it found no table, even
 * after another process has created it and has released the lock.
 */
export async function hasTable(client: Queryable, schema: string, table: string): Promise<boolean> {
  return (await client.query(hasTableSql("$1", "$2"), [schema, table])).rows.length > 0;
}

function hasTableSql(schema: string, table: string): string {
  return `SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = ${schema} AND tablename = ${table}`;
}

/**
 * Creates or migrates the tables, in one message: the server ends a transaction of several messages if this process is
 * delayed between them.
 * A role that may only read and write rows can use a store that is up to date.
 */
export async function prepareTables(client: Queryable, schema: string): Promise<void> {
  if ((await versionOf(client, schema)) === MIGRATIONS.length) return;
  const format = `${schema}.${FORMAT_TABLE}`;
  const foreign = `the schema ${schema} has tables of another program; choose another with ?schema=name`;
  const steps = MIGRATIONS.map((sql, index) => `IF found <= ${index} THEN ${sql} END IF;`);
  // Several processes may start at once: the first one migrates, the others wait and find the work done.
  await client.query(`BEGIN;
    SELECT pg_advisory_xact_lock(hashtext('docstokg store'), hashtext(${literal(schema)}));
    DO $migrate$ DECLARE found integer;
    BEGIN
      IF NOT EXISTS (${hasTableSql(literal(schema), literal(FORMAT_TABLE))}) THEN
        IF EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = ${literal(schema)}) THEN
          RAISE EXCEPTION USING ERRCODE = '${FOREIGN_TABLES}', MESSAGE = ${literal(foreign)};
        END IF;
        CREATE SCHEMA IF NOT EXISTS ${schema};
        CREATE TABLE ${format} (version integer NOT NULL);
        INSERT INTO ${format} (version) VALUES (0);
      END IF;
      SELECT version INTO found FROM ${format};
      ${steps.join("\n")}
      UPDATE ${format} SET version = greatest(version, ${MIGRATIONS.length});
    END $migrate$;
    COMMIT;`);
}

async function versionOf(client: Queryable, schema: string): Promise<number | undefined> {
  if (!(await hasTable(client, schema, FORMAT_TABLE))) return undefined;
  const { rows } = await client.query(`SELECT version FROM ${schema}.${FORMAT_TABLE}`);
  const version = Number(rows[0]?.["version"]);
  if (version > MIGRATIONS.length)
    throw new StoreError(
      `the PostgreSQL store has format version ${version}, but this version of docstokg reads up to ${MIGRATIONS.length}`,
      { isPermanent: true },
    );
  return version;
}
