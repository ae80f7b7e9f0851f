import {
  type ManifestTables,
  ROWS_PER_PAGE,
  TABLE_NAMES,
  TABLES,
  type TablePage,
  type TableRow,
} from "../manifest-tables.ts";
import type { PostgresConnection } from "./postgres-connection.ts";

/** Reads and writes all rows of a PostgreSQL manifest, on a connection of its own. */
export class PostgresTables implements ManifestTables {
  readonly #connection: PostgresConnection;

  constructor(connection: PostgresConnection) {
    this.#connection = connection;
  }

  async *read(): AsyncIterable<TablePage> {
    const client = await this.#connection.transactionClient();
    try {
      await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
      for (const table of TABLE_NAMES) {
        await client.query(`DECLARE page_of CURSOR FOR SELECT ${TABLES[table].join(", ")} FROM ${table}`);
        for (;;) {
          const { rows } = await client.query(`FETCH ${ROWS_PER_PAGE} FROM page_of`);
          if (rows.length === 0) break;
          yield { table, rows: rows as readonly TableRow[] };
        }
        await client.query("CLOSE page_of");
      }
    } finally {
      await client.end();
    }
  }

  async write(pages: AsyncIterable<TablePage>): Promise<void> {
    const client = await this.#connection.transactionClient();
    try {
      await client.query("BEGIN");
      await client.query("SET CONSTRAINTS ALL DEFERRED");
      for await (const { table, rows } of pages) {
        const columns = TABLES[table].join(", ");
        await client.query(
          `INSERT INTO ${table} (${columns}) SELECT ${columns} FROM json_populate_recordset(NULL::${table}, $1)`,
          [JSON.stringify(rows.map(withoutNul))],
        );
      }
      // Later rows continue after the ids that were copied.
      for (const table of ["runs", "works", "attempts"])
        await client.query(
          `SELECT setval(pg_get_serial_sequence('${table}', 'id'), coalesce(max(id), 0) + 1, false) FROM ${table}`,
        );
      await client.query("COMMIT");
    } finally {
      // Without a COMMIT the server rolls back.
      await client.end();
    }
  }
}

/** PostgreSQL stores no NUL characters in text. */
function withoutNul(row: TableRow): TableRow {
  return Object.fromEntries(
    Object.entries(row).map(([column, value]) => [
      column,
      typeof value === "string" ? value.replaceAll("\0", "") : value,
    ]),
  );
}
