import { z } from "zod";
import { ConfigError, type ConfigProblem } from "../errors.ts";
import type { Environment } from "./environment.ts";
import { readFileLayer, readShippedLayer } from "./file-layer.ts";
import { type IdentitiesOptions, identitiesSchema } from "./identity-schema.ts";
import { fillTemplate, isPrintable, isPublicPlaceholder, placeholdersOf } from "./identity-template.ts";
import { type Assignment, assemble, assignmentsOf } from "./layer.ts";
import { problemsOf } from "./validation.ts";

export interface IdentitySources {
  /** A file, or the same as an object; extends the shipped one. @default what DOCSTOKG_IDENTITIES_YAML names, if anything */
  readonly identities?: string | IdentitiesOptions | undefined;
  /** Where keys come from. @default nothing */
  readonly env?: Environment | undefined;
  /** Your mail address; empty for none. @default DOCSTOKG_MAILTO */
  readonly mailto?: string | undefined;
  /** The name of your program, without blanks. @default "docstokg" */
  readonly tool?: string | undefined;
}

/** One field as it is sent. Its value is private, so that no log, table or error message shows it by accident. */
export class IdentityField {
  readonly name: string;
  /** False when it holds nothing but the mail address and the name of the tool. Keys go over https only. */
  readonly isSecret: boolean;
  readonly #value: string;
  readonly #secrets: readonly string[];

  constructor(name: string, value: string, isSecret: boolean, secrets: readonly string[]) {
    this.name = name;
    this.isSecret = isSecret;
    this.#value = value;
    this.#secrets = secrets;
  }

  reveal(): string {
    return this.#value;
  }

  /** The values of the environment inside it. */
  revealSecrets(): readonly string[] {
    return this.#secrets;
  }
}

export interface HostIdentity {
  /** It is for what lies at or below this path: `/` for all. */
  readonly path: string;
  /** True when the policy names the port too. */
  readonly namesPort: boolean;
  readonly query: readonly IdentityField[];
  /** By lower-case names. */
  readonly headers: readonly IdentityField[];
}

/** How each host is told who calls. */
export class Identities {
  readonly #byHost: ReadonlyMap<string, HostIdentity>;
  readonly #mailto: string | undefined;

  constructor(byHost: ReadonlyMap<string, HostIdentity>, mailto: string | undefined) {
    this.#byHost = byHost;
    this.#mailto = mailto;
  }

  get mailto(): string | undefined {
    return this.#mailto;
  }

  /** The hosts that are told something beside the User-Agent. */
  get hosts(): readonly string[] {
    return [...this.#byHost.keys()];
  }

  /** What a canonical host is told; a port counts only where the policy names it. */
  of(host: string, port: number): HostIdentity | undefined {
    return this.#byHost.get(`${host}:${port}`) ?? this.#byHost.get(host);
  }
}

/**
 * Loads how hosts are told who calls: the shipped file, then the user's file or object, field by field, filled in from
 * the environment. Throws one ConfigError with everything that is wrong; none of its messages shows a value.
 */
export async function loadIdentities(sources: IdentitySources = {}): Promise<Identities> {
  const layers = [await readShippedLayer("identities"), await readUserLayer(sources)] as const;
  const [base, own] = [normalized(layers[0].assignments), normalized(layers[1].assignments)];
  const problems = [
    ...layers.flatMap(layer => layer.problems),
    ...[base, own].flatMap(layer => problemsOf(identitiesSchema, layer, "identities")).map(withoutValue),
  ];
  const values = new PlaceholderValues(sources);
  const standsAlone = own.some(({ path, value }) => path.join(".") === "extends" && value === "none");
  const assembled = assemble([...(standsAlone ? [] : base), ...own]);
  const { data } = identitiesSchema.safeParse(assembled);
  const byHost = new Map<string, HostIdentity>();
  for (const [host, entry] of Object.entries(data?.hosts ?? {})) {
    if (entry === null) continue;
    byHost.set(host, {
      path: entry.path ?? "/",
      namesPort: /:\d+$/.test(host),
      query: values.fill(entry.query, `hosts.${host}.query`),
      headers: values.fill(entry.headers, `hosts.${host}.headers`),
    });
  }
  problems.push(...values.problems);
  if (problems.length > 0) throw new ConfigError(problems);
  return new Identities(byHost, values.mailto);
}

/** The user's own layer. */
async function readUserLayer({ identities, env = {} }: IdentitySources) {
  const variable = "DOCSTOKG_IDENTITIES_YAML";
  const given = identities ?? (env[variable] || undefined);
  if (typeof given === "string") return readFileLayer(given, given, identities === undefined ? variable : undefined);
  return { assignments: assignmentsOf(given, "policy.identities"), problems: [] };
}

/**
 * In the one spelling that layers are put together by: header names in lower case, because they mean the same in any,
 * and null for the false that switches off a host or a field.
 */
function normalized(assignments: readonly Assignment[]): readonly Assignment[] {
  return assignments.map(({ path, value, where }) => {
    const [first, , part] = path;
    const isSwitch = first === "hosts" && (path.length === 2 || (path.length === 4 && part !== "path"));
    const isHeader = first === "hosts" && part === "headers";
    return {
      path: isHeader ? path.map((key, depth) => (depth === 3 ? key.toLowerCase() : key)) : path,
      value: isSwitch && value === false ? null : value,
      where,
    };
  });
}

/** What was found is left out: somebody may have put his key into the file. */
function withoutValue(problem: ConfigProblem): ConfigProblem {
  return { ...problem, message: problem.message.replace(/, found .*$/su, "") };
}

const NOT_AN_ADDRESS = "expected a mail address such as you@example.org, its domain in ASCII (not shown)";
const NOT_A_NAME = "expected a name in printable ASCII without blanks";
const NOT_PRINTABLE = "its value holds control characters, blanks at an end or letters beyond ASCII (not shown)";

/** What placeholders stand for, and what is wrong with it. A variable is looked at only when a template asks for it. */
class PlaceholderValues {
  readonly problems: ConfigProblem[] = [];
  readonly mailto: string | undefined;
  readonly #tool: string | undefined;
  readonly #env: Environment;
  readonly #reported = new Set<string>();

  constructor({ mailto, tool = "docstokg", env = {} }: IdentitySources) {
    this.#env = env;
    const isAddress = (text: string) => text.length <= 254 && z.regexes.html5Email.test(text);
    this.mailto =
      mailto === undefined
        ? this.#checked(env["DOCSTOKG_MAILTO"], "DOCSTOKG_MAILTO", isAddress, NOT_AN_ADDRESS)
        : this.#checked(mailto, "mailto", isAddress, NOT_AN_ADDRESS);
    this.#tool = this.#checked(tool, "tool", text => isPrintable(text) && !text.includes(" "), NOT_A_NAME);
  }

  /** The fields that have all they need. */
  fill(templates: Readonly<Record<string, string | null>> | undefined, path: string): readonly IdentityField[] {
    return Object.entries(templates ?? {}).flatMap(([name, template]) => {
      if (template === null) return [];
      const names = placeholdersOf(template);
      const values = new Map<string, string>();
      for (const placeholder of names) {
        const value = this.#valueOf(placeholder, `${path}.${name}`);
        if (value === undefined) return [];
        values.set(placeholder, value);
      }
      const isSecret = names.length === 0 || !names.every(isPublicPlaceholder);
      const secrets = names.filter(placeholder => !isPublicPlaceholder(placeholder)).map(key => values.get(key) ?? "");
      return [new IdentityField(name, fillTemplate(template, values), isSecret, secrets)];
    });
  }

  #valueOf(placeholder: string, path: string): string | undefined {
    if (placeholder === "mailto") return this.mailto;
    if (placeholder === "tool") return this.#tool;
    return this.#checked(this.#env[placeholder], placeholder, isPrintable, NOT_PRINTABLE, path);
  }

  /** A value set to nothing says nothing. What is wrong with one is said once, without the value. */
  #checked(
    value: unknown,
    where: string,
    isValid: (text: string) => boolean,
    message: string,
    path = "",
  ): string | undefined {
    if (value === undefined || value === "") return undefined;
    if (typeof value === "string" && isValid(value)) return value;
    if (!this.#reported.has(where)) this.problems.push({ where, path, message });
    this.#reported.add(where);
    return undefined;
  }
}
