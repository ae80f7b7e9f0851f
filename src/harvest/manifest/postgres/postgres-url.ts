/** The address of a PostgreSQL manifest: `postgres://user@host:5432/database?schema=name`. */
import { hasAtAfterHost, MUST_BE_ENCODED } from "../../../core/text/passwords.ts";
import { ConfigError } from "../../../errors.ts";
import { isPostgresUrl } from "../../../stores/postgres/postgres-store-url.ts";

const SCHEMA_DEFAULT = "docstokg";
const LEASE_S = { default: 60, min: 2, max: 3600 };
const SCHEMA_PATTERN = /^[a-z_][a-z0-9_]{0,62}$/;

export interface PostgresAddress {
  /** For the driver. It may contain a password. */
  readonly url: string;
  /** The schema that has the tables. */
  readonly schema: string;
  /** After this time without a renewal, other workers take over the works of a worker. */
  readonly leaseMs: number;
  /** To print: without user name and password. */
  readonly name: string;
}

/** Throws a ConfigError that does not repeat the URL, because it may contain a password. */
export function parsePostgresUrl(text: string): PostgresAddress {
  if (hasAtAfterHost(text)) throw addressError(`is not valid: ${MUST_BE_ENCODED}`);
  const url = URL.parse(text);
  if (url === null || !isPostgresUrl(text))
    throw addressError("is not a valid URL; expected postgres://user@host:5432/database?schema=name");
  if (url.pathname.length < 2)
    throw addressError("names no database; expected postgres://user@host:5432/database?schema=name");
  const schema = url.searchParams.get("schema") ?? SCHEMA_DEFAULT;
  if (!SCHEMA_PATTERN.test(schema))
    throw addressError(
      "has an invalid schema; expected 1 to 63 lower-case letters, digits and underscores, no digit first",
    );
  const leaseS = Number(url.searchParams.get("lease_s") ?? LEASE_S.default);
  if (!Number.isSafeInteger(leaseS) || leaseS < LEASE_S.min || leaseS > LEASE_S.max)
    throw addressError(`has an invalid lease_s; expected a whole number from ${LEASE_S.min} to ${LEASE_S.max}`);
  const suffix = schema === SCHEMA_DEFAULT ? "" : `?schema=${schema}`;
  url.searchParams.delete("schema");
  url.searchParams.delete("lease_s");
  return { url: url.href, schema, leaseMs: leaseS * 1000, name: `postgres://${url.host}${url.pathname}${suffix}` };
}

/** Whether the URL contains a password, as user info or as a parameter. */
export function hasPassword(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && (url.password !== "" || url.searchParams.has("password"));
}

function addressError(message: string): ConfigError {
  return new ConfigError([
    { where: "--manifest", path: "", message: `the address of the PostgreSQL manifest ${message}` },
  ]);
}
