import { withoutCredentials } from "../core/text/passwords.ts";
import { textHash } from "../core/text/text-hash.ts";
import type { Identity, IdentityField } from "./identity.ts";
import type { LoadedPolicy } from "./load.ts";

/**
 * Sixteen hexadecimal digits that identify a policy. Equal values give equal digits, whatever their order and layer.
 * The credentials of a store are left out: they change no limit, and a hash of them could be guessed.
 */
export function configHash({ ratelimits, breakers, identities }: LoadedPolicy): string {
  // Which keys are sent to which hosts selects the tiers; the values of the keys change nothing.
  const keys = Object.fromEntries(Array.from(identities.entries(), ([name, identity]) => [name, sentKeys(identity)]));
  return textHash(canonical({ ratelimits: ratelimits.options, breakers: breakers.options, keys }));
}

function sentKeys({ path, isRemoved, withheld, query, headers }: Identity): object {
  const keysOf = (fields: readonly IdentityField[]) =>
    Object.fromEntries(fields.map(({ name, placeholders }) => [name, placeholders]));
  const isWithheld = { query: withheld.query.toSorted(), headers: withheld.headers.toSorted() };
  return { path, isRemoved, withheld: isWithheld, query: keysOf(query), headers: keysOf(headers) };
}

/** JSON with sorted keys. */
function canonical(value: unknown, key = ""): string {
  if (Array.isArray(value)) return `[${value.map(item => canonical(item)).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value).filter(([, held]) => held !== undefined);
    return `{${entries
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, held]) => `${JSON.stringify(name)}:${canonical(held, name)}`)
      .join(",")}}`;
  }
  return JSON.stringify(
    key === "dsn" && typeof value === "string" ? withoutCredentials(withoutUserInfo(value)) : value,
  );
}

/**
 * A password may contain any character, so everything between the scheme of a URL and the last `@` is left out. The path
 * of a SQLite file has no password, and stays as it is.
 */
function withoutUserInfo(address: string): string {
  const [scheme] = /^(?:redis|postgres)[a-z+]*:\/\//i.exec(address) ?? [];
  const to = address.lastIndexOf("@") + 1;
  return scheme === undefined || to === 0 ? address : scheme + address.slice(to);
}
