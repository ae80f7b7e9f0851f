import type { Identities, IdentityField } from "./identity.ts";
import type { PolicyChange } from "./policy-changes.ts";

/** Identities hold keys, so their values are never shown. */
const NOT_SHOWN = "(not shown)";

/** The fields of identities that a reload has changed, without their values. */
export function identityChanges(before: Identities, after: Identities): readonly PolicyChange[] {
  const [old, now] = [fieldsOf(before), fieldsOf(after)];
  const settings = [...new Set([...old.keys(), ...now.keys()])].filter(name => old.get(name) !== now.get(name));
  return settings.sort().map(setting => ({
    setting,
    old: old.has(setting) ? NOT_SHOWN : undefined,
    new: now.has(setting) ? NOT_SHOWN : undefined,
    source: "identities",
  }));
}

/** The values by setting. They stay in this module. */
function fieldsOf(identities: Identities): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  for (const [keys, { path, query, headers }] of identities.entries()) {
    const setting = `identities.${keys}`;
    values.set(`${setting}.path`, path);
    const add = (part: string, fields: readonly IdentityField[]) => {
      for (const field of fields) values.set(`${setting}.${part}.${field.name}`, field.reveal());
    };
    add("query", query);
    add("headers", headers);
  }
  return values;
}
