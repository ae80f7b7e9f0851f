import { ConfigError, type ConfigProblem } from "../errors.ts";
import type { Environment } from "./environment.ts";
import { readUserLayer } from "./file-layer.ts";
import { Identities, type Identity, type IdentityField } from "./identity.ts";
import type { IdentitiesOptions } from "./identity-options.ts";
import { identitiesSchema } from "./identity-schema.ts";
import { placeholdersOf } from "./identity-template.ts";
import { type Assignment, assemble, standsAlone } from "./layer.ts";
import { PlaceholderValues } from "./placeholder-values.ts";
import { ProblemList } from "./problem-list.ts";
import { checkBySchema } from "./schema-check.ts";
import { shippedValues } from "./shipped-policy.ts";
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
 * placeholders filled in. Throws one ConfigError with every problem. Values are not quoted, only names in braces.
 */
export async function loadIdentities(sources: IdentitySources = {}): Promise<Identities> {
  const { identities, env = {}, mailto, tool = "docstokg" } = sources;
  const layer = await readUserLayer("identities", "DOCSTOKG_IDENTITIES_YAML", identities, env);
  const [base, own] = [normalized(shippedValues("identities")), normalized(layer.assignments)];
  const problems = [
    ...layer.problems,
    // A user may have written a key into the file, so values are never quoted.
    ...problemsOf(identitiesSchema, own, "identities", { quotesValues: false }),
    ...repeatedHeaders(layer.assignments),
  ];
  const values = new PlaceholderValues(mailto, tool, env);
  const { value } = checkBySchema(identitiesSchema, assemble([...(standsAlone(own) ? [] : base), ...own]));
  const byHost = filled("hosts", value?.hosts ?? {}, values);
  const byService = filled("services", value?.services ?? {}, values);
  problems.push(...values.problems);
  if (problems.length > 0) throw new ConfigError(problems);
  return new Identities(byHost, byService, values.mailto);
}

interface Templates {
  readonly path?: string | undefined;
  readonly query?: Readonly<Record<string, string | null>> | undefined;
  readonly headers?: Readonly<Record<string, string | null>> | undefined;
}

/** The entries under `hosts` or `services`, with the placeholders of their templates filled in. */
function filled(
  key: string,
  entries: Readonly<Record<string, Templates | null>>,
  values: PlaceholderValues,
): ReadonlyMap<string, Identity> {
  const identities = new Map<string, Identity>();
  for (const [name, entry] of Object.entries(entries)) {
    // A removed host is kept, because it gets no field of its service either.
    if (entry === null && key === "services") continue;
    const { path = "/", query: queryTemplates = {}, headers: headerTemplates = {} } = entry ?? {};
    const query = values.fill(queryTemplates, `${key}.${name}.query`);
    const headers = values.fill(headerTemplates, `${key}.${name}.headers`);
    identities.set(name, {
      path,
      namesPort: /:\d+$/.test(name),
      isRemoved: entry === null,
      query,
      headers,
      withheld: { query: namesWithout(queryTemplates, query), headers: namesWithout(headerTemplates, headers) },
      placeholders: [queryTemplates, headerTemplates].flatMap(templates =>
        Object.values(templates).flatMap(template => (template === null ? [] : placeholdersOf(template))),
      ),
    });
  }
  return identities;
}

/** The names of the templates that give no field. */
function namesWithout(templates: object, fields: readonly IdentityField[]): readonly string[] {
  return Object.keys(templates).filter(name => fields.every(field => field.name !== name));
}

/** Header names are the same in any spelling, so one of the two values would be dropped. */
function repeatedHeaders(assignments: readonly Assignment[]): readonly ConfigProblem[] {
  const headers = assignments.filter(({ path }) => path.length === 4 && path[2] === "headers");
  const byName = Map.groupBy(headers, ({ path }) => path.join("\n").toLowerCase());
  const list = new ProblemList();
  for (const [first, second] of byName.values())
    if (first !== undefined && second !== undefined)
      list.add(() => ({
        where: second.where,
        path: second.path.join("."),
        message: `the same header as ${first.path[3]}`,
      }));
  return list.problems;
}

/**
 * The assignments in one spelling, so that layers can be merged by key: header names are in lower case, and a false that
 * removes a host, a service or a field is null.
 */
function normalized(assignments: readonly Assignment[]): readonly Assignment[] {
  return assignments.map(({ path, value, where }) => {
    const [first, , part] = path;
    const isEntry = first === "hosts" || first === "services";
    const isRemovable = isEntry && (path.length === 2 || (path.length === 4 && part !== "path"));
    const isHeader = isEntry && part === "headers";
    return {
      path: isHeader ? path.map((key, depth) => (depth === 3 ? key.toLowerCase() : key)) : path,
      value: isRemovable && value === false ? null : value,
      where,
    };
  });
}
