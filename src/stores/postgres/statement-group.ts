import type { SqlParameter, SqlRow } from "./postgres-driver.ts";

/** A statement that the server parses once for a connection. */
export interface SqlStatement {
  readonly text: string;
  readonly values: readonly SqlParameter[];
}

/** What a group uses of a connection of pg: the messages of the protocol, as packages like pg-cursor use them. */
interface PgConnection {
  readonly stream: { cork(): void; uncork(): void };
  parse(message: { readonly name: string; readonly text: string }): void;
  bind(message: { readonly statement: string; readonly values: readonly (string | null)[] }): void;
  describe(message: { readonly type: "P" }): void;
  execute(message: Readonly<Record<string, never>>): void;
  sync(): void;
}

interface PgField {
  readonly name: string;
  readonly dataTypeID: number;
}

type ParseValue = (value: string) => unknown;

/** The texts of the parsed statements by name. The texts are those of this program, so there are few. */
const names = new Map<string, string>();
/** The names of the statements that each connection has sent to be parsed. */
const parsedNames = new WeakMap<PgConnection, Set<string>>();

/**
 * Statements that are sent to the server together, and take effect together: one exchange, one transaction and one commit
 * for all of them. An object for `query` of a client of pg. If a statement fails, none takes effect, and the connection
 * must be closed: it is not known which statements the server has parsed.
 */
export class StatementGroup {
  readonly #statements: readonly SqlStatement[];
  readonly #parserOf: (type: number) => ParseValue;
  readonly #results: SqlRow[][] = [];
  #rows: SqlRow[] = [];
  #columns: readonly { readonly name: string; readonly parse: ParseValue }[] = [];
  /** Gets the rows of each statement. pg replaces it to limit the time of the query. */
  callback: (error: Error | null, results?: readonly (readonly SqlRow[])[]) => void;

  constructor(
    statements: readonly SqlStatement[],
    parserOf: (type: number) => ParseValue,
    callback: StatementGroup["callback"],
  ) {
    this.#statements = statements;
    this.#parserOf = parserOf;
    this.callback = callback;
  }

  submit(connection: PgConnection): void {
    let parsed = parsedNames.get(connection);
    if (parsed === undefined) {
      parsed = new Set();
      parsedNames.set(connection, parsed);
    }
    connection.stream.cork();
    for (const { text, values } of this.#statements) {
      const name = nameOf(text);
      if (!parsed.has(name)) connection.parse({ name, text });
      parsed.add(name);
      connection.bind({ statement: name, values: values.map(valueText) });
      connection.describe({ type: "P" });
      connection.execute({});
    }
    connection.sync();
    connection.stream.uncork();
  }

  handleRowDescription({ fields }: { readonly fields: readonly PgField[] }): void {
    this.#columns = fields.map(({ name, dataTypeID }) => ({ name, parse: this.#parserOf(dataTypeID) }));
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    const entries = this.#columns.map(({ name, parse }, index) => {
      const value = fields[index] ?? null;
      return [name, value === null ? null : parse(value)] as const;
    });
    this.#rows.push(Object.fromEntries(entries));
  }

  handleCommandComplete(): void {
    this.#results.push(this.#rows);
    this.#rows = [];
  }

  handleError(error: Error): void {
    this.callback(error);
  }

  /** The server has committed. */
  handleReadyForQuery(): void {
    this.callback(null, this.#results);
  }
}

/** The same for the same text, in all connections. */
function nameOf(text: string): string {
  let name = names.get(text);
  if (name === undefined) {
    name = `docstokg_${names.size}`;
    names.set(text, name);
  }
  return name;
}

/** PostgreSQL stores no NUL characters in text, so they are left out. */
function valueText(value: SqlParameter): string | null {
  if (value === null) return null;
  if (!Array.isArray(value)) return String(value).replaceAll("\0", "");
  return `{${value.map(item => (item === null ? "NULL" : `"${valueText(item)?.replaceAll(/["\\]/g, "\\$&")}"`)).join(",")}}`;
}
