import { isPrivateName } from "../core/text/credentials.ts";

/** A long text of letters and digits without words: a token, a signature, or an encoded policy. */
const OPAQUE = /^(?=.*\d)(?=.*[a-z])[\w+/=.~-]{32,}$/i;

/**
 * A URL for messages and files: without credentials, and with secret values in query and path replaced by `…`. A value
 * that looks like a token is hidden whatever its name is.
 */
export function redactedUrl(url: string): string {
  const parsed = URL.parse(url);
  if (parsed === null) return "(invalid URL)";
  if (parsed.username !== "" || parsed.password !== "") {
    parsed.username = "";
    parsed.password = "";
  }
  parsed.hash = "";
  for (const [name, value] of [...parsed.searchParams]) if (isSecret(name, value)) parsed.searchParams.set(name, "…");
  // `/article;jsessionid=0123` has its parameters in the path.
  parsed.pathname = parsed.pathname.replace(/;([^;=/]{1,100})=([^;/]*)/g, (all, name: string, value: string) =>
    isSecret(name, value) ? `;${name}=…` : all,
  );
  return parsed.href;
}

/** Whether a URL contains something that must not be stored. */
export function hasSecret(url: string): boolean {
  const plain = URL.parse(url);
  if (plain === null) return false;
  plain.hash = "";
  return redactedUrl(url) !== plain.href;
}

function isSecret(name: string, value: string): boolean {
  return isPrivateName(name) || /^(?:policy|tk|tok|hash|h|nonce|challenge)$/i.test(name) || isOpaque(value);
}

function isOpaque(value: string): boolean {
  // DOIs and paths have words between slashes.
  return value.length <= 4096 && OPAQUE.test(value) && !/^10\.\d{4,9}\//.test(value);
}
