import { ConfigError } from "../errors.ts";
import { Identities, type Identity, IdentityField } from "./identity.ts";
import type { Assignment } from "./layer.ts";
import { type LoadedPolicy, policyFromAssignments } from "./load.ts";

/**
 * The policy that a running process uses, for the commands of an operator: every value with its source. It contains no
 * secret: the addresses of stores and the values of identification are left out.
 */
export interface PublishedPolicy {
  readonly ratelimits: readonly PublishedAssignment[];
  readonly breakers: readonly PublishedAssignment[];
  readonly identities: readonly PublishedIdentity[];
}

type PublishedAssignment = readonly [path: readonly string[], value: unknown, where: string];

/** Older versions publish neither `isRemoved` nor `withheld`. */
type PublishedIdentityFacts = Pick<Identity, "path" | "namesPort" | "placeholders"> &
  Partial<Pick<Identity, "isRemoved" | "withheld">>;

interface PublishedIdentity extends PublishedIdentityFacts {
  /** `hosts.<host>` or `services.<name>`. */
  readonly key: string;
  readonly query: readonly PublishedField[];
  readonly headers: readonly PublishedField[];
}

type PublishedField = readonly [name: string, isSecret: boolean, placeholders: readonly string[]];

/** A larger policy is not published: every process would write megabytes. */
const PUBLISHED_CHARS_MAX = 256 * 1024;

/** Undefined if the policy is too large. */
export function publishedPolicyOf({ ratelimits, breakers, identities }: LoadedPolicy): PublishedPolicy | undefined {
  const published: PublishedPolicy = {
    ratelimits: publishedAssignments(ratelimits.assignments),
    breakers: publishedAssignments(breakers.assignments),
    identities: Array.from(identities.entries(), ([key, identity]) => publishedIdentity(key, identity)),
  };
  return JSON.stringify(published).length <= PUBLISHED_CHARS_MAX ? published : undefined;
}

/** Undefined if the record is not one that this version can read. */
export function loadPublishedPolicy(published: PublishedPolicy): LoadedPolicy | undefined {
  try {
    const identities = identitiesOf(published.identities);
    return policyFromAssignments(
      published.ratelimits.map(toAssignment),
      published.breakers.map(toAssignment),
      identities,
    );
  } catch (error) {
    // Written by another version, with settings that this one does not know.
    if (error instanceof ConfigError || error instanceof TypeError) return undefined;
    throw error;
  }
}

function publishedAssignments(assignments: readonly Assignment[]): readonly PublishedAssignment[] {
  return assignments.filter(({ path }) => !isStore(path)).map(({ path, value, where }) => [path, value, where]);
}

/** The address of a store may contain a password, and the reader has the store already. */
function isStore([first, second]: readonly string[]): boolean {
  if (first === "backend") return second !== "when_store_away" && second !== "fleet_size";
  return first === "advanced" && second === "cooldown_store";
}

function toAssignment([path, value, where]: PublishedAssignment): Assignment {
  return { path: path.map(String), value, where: String(where) };
}

function publishedIdentity(key: string, { query, headers, ...identity }: Identity): PublishedIdentity {
  const fields = (list: readonly IdentityField[]) =>
    list.map((field): PublishedField => [field.name, field.isSecret, field.placeholders]);
  return { key, ...identity, query: fields(query), headers: fields(headers) };
}

const NONE_WITHHELD = { query: [], headers: [] };

/** The values of the fields are empty: only which fields are sent decides about limits. */
function identitiesOf(published: readonly PublishedIdentity[]): Identities {
  const fields = (list: readonly PublishedField[]) =>
    list.map(([name, isSecret, placeholders]) => new IdentityField(name, "", isSecret, [], placeholders));
  const byPrefix = (prefix: string) =>
    new Map(
      published
        .filter(({ key }) => key.startsWith(prefix))
        .map(({ key, query, headers, ...rest }): [string, Identity] => [
          key.slice(prefix.length),
          { isRemoved: false, withheld: NONE_WITHHELD, ...rest, query: fields(query), headers: fields(headers) },
        ]),
    );
  return new Identities(byPrefix("hosts."), byPrefix("services."), undefined);
}
