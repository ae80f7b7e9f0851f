/**
 * The only file that uses `pg`. The package is optional and is loaded when a PostgreSQL database is opened. The
 * types that are used are declared here, so that programs compile without the types of `pg`.
 */
import type { Socket } from "node:net";
import { ConfigError, messageOf } from "../../errors.ts";
import { type SqlStatement, StatementGroup } from "./statement-group.ts";

/** A row by the names of its columns. */
export type SqlRow = Readonly<Record<string, unknown>>;

export type SqlParameter = string | number | boolean | null | readonly (string | number | boolean | null)[];

export interface QueryResult {
  readonly rows: readonly SqlRow[];
  /** Rows that were changed or returned. */
  readonly rowCount: number | null;
}

/** Runs statements: a connection, or a transaction on one. */
export interface Queryable {
  query(text: string, values?: readonly SqlParameter[]): Promise<QueryResult>;
}

/** One connection. */
export interface PgClient extends Queryable {
  query(text: string, values?: readonly SqlParameter[]): Promise<QueryResult>;
  query(group: StatementGroup): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "notification", listener: (message: { readonly payload?: string | undefined }) => void): unknown;
  on(event: "end", listener: () => void): unknown;
}

export interface PgPoolClient extends PgClient {
  /** @param error closes the connection instead of keeping it */
  release(error?: boolean): void;
}

export interface PgSingleClient extends PgClient {
  connect(): Promise<unknown>;
  end(): Promise<void>;
  /** The connection keeps the program alive, until `unref`. */
  ref(): void;
  unref(): void;
  readonly connection: { readonly stream: Pick<Socket, "destroy" | "destroySoon" | "writableEnded"> };
}

export interface PgPool {
  connect(): Promise<PgPoolClient>;
  end(): Promise<void>;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "connect", listener: (client: PgClient) => void): unknown;
}

interface PgModule {
  readonly Pool: new (config: Readonly<Record<string, unknown>>) => PgPool;
  readonly Client: new (config: Readonly<Record<string, unknown>>) => PgSingleClient;
  readonly types: { readonly getTypeParser: (oid: number, format?: string) => (value: string) => unknown };
}

/** Creates connections to one database, with one schema as their search path. */
export interface PgDriver {
  pool(connections: number): PgPool;
  client(): PgSingleClient;
  /** Breaks all connections, also those that are being opened. Later ones fail. */
  abandon(): void;
  /** Runs statements on a connection in one transaction. Returns the rows of each. See `StatementGroup`. */
  runGroup(client: PgClient, statements: readonly SqlStatement[]): Promise<readonly (readonly SqlRow[])[]>;
}

/** The type number of int8. pg returns int8 values as text; those of docstokg are far below 2 ** 53, so numbers suffice. */
const INT8 = 20;
const CONNECT_TIMEOUT_MS = 10_000;
/** A report counts a million rows in less than a second, so a server that needs longer than this is stuck. */
const QUERY_TIMEOUT_MS = 60_000;
/**
 * A connection that listens for notifications sends nothing. Without probes it would not notice for two hours that a
 * firewall has dropped it, or that the server is gone.
 */
const KEEP_ALIVE_MS = 10_000;

export interface PgDriverOptions {
  /** May contain a password: it must not be printed. */
  readonly url: string;
  readonly schema: string;
  /**
   * How long a process that is suspended between two statements of a transaction holds its locks. It does not limit a
   * process that is suspended while it sends a statement: the server waits for the rest.
   */
  readonly idleInTransactionMs: number;
  /** 0: no limit. @default 60 s */
  readonly queryTimeoutMs?: number;
  /** 0: no limit. @default 10 s */
  readonly connectTimeoutMs?: number;
  /** How long a statement waits for a lock. @default no limit */
  readonly lockTimeoutMs?: number;
}

/** Rejects with a ConfigError if the package is not installed. */
export async function loadPgDriver(options: PgDriverOptions): Promise<PgDriver> {
  const { url, schema, idleInTransactionMs, lockTimeoutMs = 0 } = options;
  const { connectTimeoutMs = CONNECT_TIMEOUT_MS, queryTimeoutMs = QUERY_TIMEOUT_MS } = options;
  const { Pool, Client, types } = await loadPg();
  const getTypeParser = (oid: number, format?: string) => (oid === INT8 ? Number : types.getTypeParser(oid, format));
  // Not as options of the connection: poolers such as PgBouncer refuse them.
  const settings =
    `SET search_path = "${schema}"; SET client_min_messages = warning; SET lock_timeout = ${lockTimeoutMs}; ` +
    `SET idle_in_transaction_session_timeout = ${idleInTransactionMs}; SET standard_conforming_strings = on; ` +
    // Statements wait for locks and then read what others have committed. A database may have another default.
    "SET default_transaction_isolation = 'read committed'";
  const open = new Set<PgSingleClient>();
  let isAbandoned = false;
  const SetClient = withSettings(Client, settings, client => {
    open.add(client);
    client.on("end", () => open.delete(client));
    if (isAbandoned) destroy(client);
  });
  const config = {
    connectionString: url,
    application_name: "docstokg",
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: queryTimeoutMs,
    types: { getTypeParser },
  };
  return {
    pool: max => new Pool({ ...config, max, Client: SetClient }),
    client: () => new SetClient(config),
    abandon: () => {
      isAbandoned = true;
      for (const client of open) destroy(client);
    },
    runGroup: (client, statements) =>
      new Promise((resolve, reject) => {
        client.query(
          new StatementGroup(statements, getTypeParser, (error, results = []) =>
            error === null ? resolve(results) : reject(error),
          ),
        );
      }),
  };
}

/** A connection that was ended sends its last message first. */
function destroy({ connection: { stream } }: PgSingleClient): void {
  if (stream.writableEnded) stream.destroySoon();
  else stream.destroy();
}

/** A client that runs statements when it has connected, before any other. A pool calls `connect` with a callback. */
function withSettings(
  Client: PgModule["Client"],
  settings: string,
  onOpening: (client: PgSingleClient) => void,
): PgModule["Client"] {
  return class extends Client {
    override async connect(callback?: (error: Error | null) => void): Promise<void> {
      try {
        const connected = super.connect();
        onOpening(this);
        await connected;
        await this.query(settings);
      } catch (cause) {
        // A pool forgets a client that has not connected. If only the settings were refused, its connection is open.
        this.end().catch(() => undefined);
        const error = explained(cause);
        if (callback === undefined) throw error;
        callback(error);
        return;
      }
      callback?.(null);
    }
  };
}

/** pg names its own function in the error about a missing password. */
function explained(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(messageOf(error));
  if (/^SASL: .* client password must be a /.test(error.message))
    error.message = "the server asks for a password: set PGPASSWORD or PGPASSFILE";
  return error;
}

async function loadPg(): Promise<PgModule> {
  // Not a literal, because the compiler would look for the types of the package.
  const name: string = "pg";
  try {
    const module = (await import(name)) as { readonly default: PgModule };
    return module.default;
  } catch (cause) {
    const message = "PostgreSQL needs the package pg: npm install pg";
    throw new ConfigError([{ where: "postgres", path: "", message }], { cause });
  }
}

/** Runs statements on a connection. PostgreSQL stores no NUL characters in text, so they are left out. */
export function queryableOf(client: PgClient): Queryable {
  return { query: (text, values) => client.query(text, values?.map(storable)) };
}

function storable(value: SqlParameter): SqlParameter {
  if (typeof value === "string") return value.replaceAll("\0", "");
  return Array.isArray(value)
    ? value.map(item => (typeof item === "string" ? item.replaceAll("\0", "") : item))
    : value;
}
