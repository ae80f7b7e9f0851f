/**
 * Recognises a throttled response whose status does not show it: a 200 with "API rate limit exceeded", a 403 of a
 * firewall. Every part that a rule has must match. Pure.
 */
export interface ThrottleRule {
  /** Statuses that it applies to; undefined for all. */
  readonly statuses: ReadonlySet<number> | undefined;
  /**
   * A header field and a text that its value must contain, both in lower case; an empty text only requires the field.
   */
  readonly header: { readonly name: string; readonly text: string } | undefined;
  /** A text that the beginning of the body must contain, in lower case. */
  readonly body: string | undefined;
  /** The delay that applies if the response has no Retry-After, in milliseconds. */
  readonly retryAfterMs: number | undefined;
}

/** For hosts without rules. */
export const NO_THROTTLE_RULES: readonly ThrottleRule[] = [];

export function matchesStatus({ statuses }: ThrottleRule, status: number): boolean {
  return statuses === undefined || statuses.has(status);
}

export function matchesHeader({ header }: ThrottleRule, field: (name: string) => string | undefined): boolean {
  return header === undefined || field(header.name)?.toLowerCase().includes(header.text) === true;
}

export function matchesBody({ body }: ThrottleRule, text: string): boolean {
  return body === undefined || text.toLowerCase().includes(body);
}
