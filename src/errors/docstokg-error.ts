/** `Symbol.for`, so that `isDocstokgError` also recognises errors of another copy of this package. */
const brand = Symbol.for("docstokg.error");

/** The `code` of every error class, stable across versions. */
export type DocstokgErrorCode =
  | "DOCSTOKG_RATE_LIMITED"
  | "DOCSTOKG_BREAKER_OPEN"
  | "DOCSTOKG_BUSY"
  | "DOCSTOKG_CONFIG"
  | "DOCSTOKG_STORE"
  | "DOCSTOKG_DOWNLOAD"
  | "DOCSTOKG_PRIVATE_ADDRESS"
  | "DOCSTOKG_DEADLINE"
  | "DOCSTOKG_BODY_UNREAD"
  | "DOCSTOKG_REDIRECT"
  | "DOCSTOKG_CLOSED";

/** Base class of every error this package raises on purpose. */
export abstract class DocstokgError extends Error {
  /** Identifies the class; use it where `instanceof` cannot work, for example across worker threads. */
  abstract readonly code: DocstokgErrorCode;
  /** Marks the errors of this package for `isDocstokgError`. */
  readonly [brand] = true;
}

/** True for every error of this package, also when another installed copy of it created the error. */
export function isDocstokgError(value: unknown): value is DocstokgError {
  return typeof value === "object" && value !== null && brand in value;
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
