import type { FieldPart, Identities, Identity } from "./identity.ts";
import type { PolicyChange } from "./policy-changes.ts";

/** Identities hold keys, so the values of their fields are never shown. */
const NOT_SHOWN = "(not shown)";
/** The file removes the host: requests to it carry no field, not even those of its service. */
const REMOVED = "removed";
/** The file removes the field, or one of its placeholders has no value. */
const NOT_SENT = "not sent";

/** One setting of an identity. */
interface IdentityValue {
  /** Stays in this module: it may be a key. */
  readonly text: string;
  readonly shown: string;
}

/** What a reload has changed in identities: paths, hosts that are removed, and fields, without their values. */
export function identityChanges(before: Identities, after: Identities): readonly PolicyChange[] {
  const [old, now] = [valuesOf(before), valuesOf(after)];
  const settings = [...new Set([...old.keys(), ...now.keys()])];
  return settings
    .filter(setting => old.get(setting)?.text !== now.get(setting)?.text)
    .sort()
    .map(setting => ({
      setting,
      old: old.get(setting)?.shown,
      new: now.get(setting)?.shown,
      source: "identities",
    }));
}

function valuesOf(identities: Identities): ReadonlyMap<string, IdentityValue> {
  const values = new Map<string, IdentityValue>();
  for (const [keys, identity] of identities.entries()) {
    const setting = `identities.${keys}`;
    const { path, isRemoved } = identity;
    if (isRemoved) values.set(setting, { text: REMOVED, shown: REMOVED });
    if (path !== "/") values.set(`${setting}.path`, { text: path, shown: path });
    for (const part of ["query", "headers"] as const)
      for (const [name, value] of fieldsOf(identity, part)) values.set(`${setting}.${part}.${name}`, value);
  }
  return values;
}

function fieldsOf(identity: Identity, part: FieldPart): readonly (readonly [name: string, value: IdentityValue])[] {
  return [
    ...identity.withheld[part].map(name => [name, { text: "", shown: NOT_SENT }] as const),
    ...identity[part].map(field => [field.name, { text: `=${field.reveal()}`, shown: NOT_SHOWN }] as const),
  ];
}
