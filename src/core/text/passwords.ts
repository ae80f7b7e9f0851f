/** Hides the passwords in text that a user has written, before it is shown in messages and tables. */

import { isCredentialName } from "./credentials.ts";

const HIDDEN = "…";
/** A path that begins with a drive letter, so that its colon separates no user name from a password. */
const DRIVE = /^[a-z]:[\\/]/i;
const STRING_LITERAL = /"(?:[^"\\]|\\.)*"/gs;

/**
 * A URL, address or option without user name, password and secret parameters. The text may be malformed: everything
 * before the last `@` is hidden if it can contain a password, whatever characters the password has.
 */
export function withoutCredentials(text: string): string {
  const scheme = text.indexOf("://");
  const shown = text.slice(0, scheme === -1 ? 0 : scheme + 3);
  const at = text.lastIndexOf("@");
  if (at !== -1 && hasPasswordBefore(text, at)) return `${shown}${HIDDEN}${withoutSecretValues(text.slice(at))}`;
  // `redis://user:password`, without a host: the parser takes the password for a port, and refuses it.
  if (scheme !== -1 && URL.parse(text.slice(scheme).replace("://", "http://")) === null) return `${shown}${HIDDEN}`;
  return withoutSecretValues(text);
}

/** The same for every text in double quotes inside a message. */
export function withoutQuotedCredentials(message: string): string {
  return message.replace(STRING_LITERAL, literal => {
    const text = unquoted(literal);
    const safe = withoutCredentials(text);
    return safe === text ? literal : JSON.stringify(safe);
  });
}

/** What is wrong with an address for which `hasAtAfterHost` is true. */
export const MUST_BE_ENCODED =
  "the characters / ? # and @ of a user name, password or parameter must be percent-encoded";

/** Whether an `@` follows the host. Then a parser may take a part of the password for the host or the path. */
export function hasAtAfterHost(url: string): boolean {
  return /^[^:]*:\/\/[^/?#]*[/?#].*@/s.test(url);
}

function hasPasswordBefore(text: string, at: number): boolean {
  const start = text.startsWith("sqlite:") ? "sqlite:".length : DRIVE.test(text) ? 2 : 0;
  const colon = text.indexOf(":", start);
  return colon !== -1 && colon < at;
}

function withoutSecretValues(text: string): string {
  if (!text.includes("=")) return text;
  return text
    .split(/(?=[?&;,\s])/)
    .map(part => {
      const equals = part.indexOf("=");
      return equals > 0 && isCredentialName(part.slice(0, equals).replace(/^[?&;,\s]/, ""))
        ? `${part.slice(0, equals + 1)}${HIDDEN}`
        : part;
    })
    .join("");
}

function unquoted(literal: string): string {
  try {
    return JSON.parse(literal) as string;
  } catch {
    return literal.slice(1, -1);
  }
}
