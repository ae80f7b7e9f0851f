/** The address of a PostgreSQL store: `postgres://user@host:5432/database?schema=name`. */
import { hasAtAfterHost, MUST_BE_ENCODED } from "../../core/text/passwords.ts";

const SCHEMA_DEFAULT = "docstokg_store";
const SCHEMA_PATTERN = /^[a-z_][a-z0-9_]{0,62}$/;

export interface PostgresStoreAddress {
  /** For the driver. It may contain a password. */
  readonly url: string;
  /** The schema that has the tables of the store. */
  readonly schema: string;
  /** To print: without user name and password. */
  readonly name: string;
}

export function isPostgresUrl(text: string): boolean {
  return /^postgres(?:ql)?:/i.test(text);
}

/** Throws a RangeError that does not repeat the URL, because it may contain a password. */
export function parsePostgresStoreUrl(text: string): PostgresStoreAddress {
  if (hasAtAfterHost(text)) throw new RangeError(`the address of the PostgreSQL store: ${MUST_BE_ENCODED}`);
  const url = URL.parse(text);
  if (url === null || !isPostgresUrl(text) || url.pathname.length < 2)
    throw new RangeError(
      "the address of the PostgreSQL store: expected postgres://user@host:5432/database?schema=name",
    );
  const schema = url.searchParams.get("schema") ?? SCHEMA_DEFAULT;
  if (!SCHEMA_PATTERN.test(schema))
    throw new RangeError(
      "the address of the PostgreSQL store: schema must be 1 to 63 lower-case letters, digits and underscores, no digit first",
    );
  url.searchParams.delete("schema");
  const suffix = schema === SCHEMA_DEFAULT ? "" : `?schema=${schema}`;
  return { url: url.href, schema, name: `postgres://${url.host}${url.pathname}${suffix}` };
}
