import { ConfigError } from "../errors.ts";
import type { Environment } from "./environment.ts";
import { readShippedLayer, readUserLayer } from "./file-layer.ts";
import { type HostIdentity, Identities } from "./identity.ts";
import type { IdentitiesOptions } from "./identity-options.ts";
import { identitiesSchema } from "./identity-schema.ts";
import { placeholdersOf } from "./identity-template.ts";
import { type Assignment, assemble, standsAlone } from "./layer.ts";
import { PlaceholderValues } from "./placeholder-values.ts";
import { problemsOf } from "./validation.ts";

export interface IdentitySources {
  /** The path of a YAML file, or its content as an object. @default the file that DOCSTOKG_IDENTITIES_YAML names */
  readonly identities?: string | IdentitiesOptions | undefined;
  /** Environment variables with the keys of services. @default none */
  readonly env?: Environment | undefined;
  /** The email address of the program's operator; empty for none. @default DOCSTOKG_MAILTO */
  readonly mailto?: string | undefined;
  /** The name of the program, without spaces. @default "docstokg" */
  readonly tool?: string | undefined;
}

/**
 * Loads the identification of requests: the shipped file, then the user's file or object, field by field, with
 * placeholders filled in. Throws one ConfigError with every problem; no message contains a value.
 */
export async function loadIdentities(sources: IdentitySources = {}): Promise<Identities> {
  const { identities, env = {}, mailto, tool = "docstokg" } = sources;
  const layers = [
    await readShippedLayer("identities"),
    await readUserLayer("identities", "DOCSTOKG_IDENTITIES_YAML", identities, env),
  ] as const;
  const [base, own] = [normalized(layers[0].assignments), normalized(layers[1].assignments)];
  const problems = [
    ...layers.flatMap(layer => layer.problems),
    // A user may have written a key into the file, so values are never quoted.
    ...[base, own].flatMap(layer => problemsOf(identitiesSchema, layer, "identities", { quotesValues: false })),
  ];
  const values = new PlaceholderValues(mailto, tool, env);
  const { data } = identitiesSchema.safeParse(assemble([...(standsAlone(own) ? [] : base), ...own]));
  const byHost = new Map<string, HostIdentity>();
  for (const [host, entry] of Object.entries(data?.hosts ?? {})) {
    if (entry === null) continue;
    byHost.set(host, {
      path: entry.path ?? "/",
      namesPort: /:\d+$/.test(host),
      query: values.fill(entry.query, `hosts.${host}.query`),
      headers: values.fill(entry.headers, `hosts.${host}.headers`),
      placeholders: [entry.query, entry.headers].flatMap(templates =>
        Object.values(templates ?? {}).flatMap(template => (template === null ? [] : placeholdersOf(template))),
      ),
    });
  }
  problems.push(...values.problems);
  if (problems.length > 0) throw new ConfigError(problems);
  return new Identities(byHost, values.mailto);
}

/**
 * The assignments in one spelling, so that layers can be merged by key: header names in lower case, and null for the
 * false that removes a host or a field.
 */
function normalized(assignments: readonly Assignment[]): readonly Assignment[] {
  return assignments.map(({ path, value, where }) => {
    const [first, , part] = path;
    const isRemovable = first === "hosts" && (path.length === 2 || (path.length === 4 && part !== "path"));
    const isHeader = first === "hosts" && part === "headers";
    return {
      path: isHeader ? path.map((key, depth) => (depth === 3 ? key.toLowerCase() : key)) : path,
      value: isRemovable && value === false ? null : value,
      where,
    };
  });
}
