import { isUnusableTls } from "../unusable-tls.ts";

/**
 * A SQLSTATE is five letters and digits. Some codes of Node have that form too, such as `EPIPE` and `EPERM`: they begin
 * with E and have no digit, and PostgreSQL has no such SQLSTATE.
 */
const SQLSTATE = /^(?!E[A-Z]{4}$)[0-9A-Z]{5}$/;

/**
 * Temporary conditions besides those of `CONNECTION_STATES`: the server has too many connections, or a transaction had a
 * conflict with another one (serialization failure, deadlock, lock timeout).
 */
const TRANSIENT_STATES: ReadonlySet<string> = new Set(["53300", "40001", "40P01", "55P03"]);

/**
 * The connection was lost, the server ends it, starts or stops, or the server is read-only (25006): it was the primary
 * and is a standby now, and a new connection finds the new primary.
 */
const CONNECTION_STATES = /^(?:08|57P0[1-5]|25P03|25006)/;

/** Thrown in a transaction that must be repeated, because another process has changed what it has read. */
export class RepeatTransaction extends Error {}

/** The SQLSTATE of an error that the server has sent; undefined for other errors. */
export function sqlStateOf(error: unknown): string | undefined {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return SQLSTATE.test(code) ? code : undefined;
}

/** Whether the connection can no longer be used. */
export function isConnectionError(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state === undefined ? isNetworkError(error) : CONNECTION_STATES.test(state);
}

/** Whether the same operation may succeed later. */
export function isTransient(error: unknown): boolean {
  return (
    error instanceof RepeatTransaction || isConnectionError(error) || TRANSIENT_STATES.has(sqlStateOf(error) ?? "")
  );
}

/**
 * Whether a connection can never be opened with this address: there is no password or another one than the server has
 * (`SASL`), the server has no TLS, its certificate is not trusted, or a file of certificates cannot be read.
 */
export function isUnusableAddress(error: unknown): boolean {
  return (
    isUnusableTls(error) ||
    (error instanceof Error &&
      /^(?:SASL: |the server asks for a password|The server does not support SSL connections$)/.test(error.message))
  );
}

/** pg reports lost connections and its timeouts as errors without a SQLSTATE, with or without a code of Node. */
function isNetworkError(error: unknown): boolean {
  if (!(error instanceof Error) || isUnusableTls(error)) return false;
  // `EAI_AGAIN` is a name that could not be resolved now. `ERR_…` are errors of the program or of a certificate.
  if ("code" in error && typeof error.code === "string") return /^E(?!RR_)[A-Z_]+$/.test(error.code);
  return /^(?:Connection terminated|Client has encountered a connection error|timeout (?:expired|exceeded)|Query read timeout|Client was closed)/i.test(
    error.message,
  );
}
