import { ONTOFETCH_VARIABLES } from "../../src/ontology/ontofetch-environment.ts";
import { VARIABLE_NAMES, VARIABLE_PREFIXES } from "../../src/policy/environment.ts";
import { jsonSchemas } from "../../src/policy/json-schema.ts";
import { SHORT_NAMES } from "../../src/policy/overrides.ts";
import { shippedValues } from "../../src/policy/shipped-policy.ts";
import { code, page, table } from "./markdown.ts";
import { DESCRIBED_VARIABLES, overridesOf } from "./overrides.ts";
import { type JsonSchema, type KeySection, keySections } from "./schema-keys.ts";

/** Variables that do not belong to one key of the policy. */
const OTHER_VARIABLES: Readonly<Record<string, string>> = {
  DOCSTOKG_RLIMITS_YAML: "path of your `ratelimits.yaml`, which changes single fields of the shipped one",
  DOCSTOKG_BREAKERS_YAML: "path of your `breakers.yaml`",
  DOCSTOKG_IDENTITIES_YAML: "path of your `identities.yaml`",
  DOCSTOKG_RLIMITS:
    "several entries of `--rate`, separated by `;`. Use it in a shell: a shell cannot export `DOCSTOKG_RLIMIT__<host>__<role>`, because a host has dots. Example: `api.example.org:metadata=3/SECOND;service:arxiv:total=1/5SECOND`",
  DOCSTOKG_BREAKERS:
    "several entries of `--breaker`, `--breaker-role` and `resolver:<name>=…`, separated by `;`. Example: `api.example.org=fail_max:3;api.example.org:artifact=reset:300`",
  DOCSTOKG_MAILTO: "your email address, sent to services (`--mailto`)",
  DOCSTOKG_CACHE: "cache of `docstokg/register`: `memory`, `off` or `sqlite:<file>`",
  DOCSTOKG_MANIFEST:
    "manifest of `docstokg run` and of the commands that read its manifest, except `docstokg report`: a file or a PostgreSQL URL (`--manifest`)",
};

/** Variables of other programs that docstokg reads. */
const FOREIGN_VARIABLES: Readonly<Record<string, string>> = {
  "HTTP_PROXY, HTTPS_PROXY, NO_PROXY": 'proxies of both programs, and of a hub with `network: { proxy: "env" }`',
  NODE_USE_ENV_PROXY: "with `docstokg/register`: use these proxies, as Node does",
  NODE_DEBUG: "a list that contains `docstokg` prints the effective policy at the start",
  XDG_RUNTIME_DIR: "folder of the store `multiprocess`",
  "PGPASSWORD, PGPASSFILE": "password of a PostgreSQL manifest",
  "NO_COLOR, TERM": "`NO_COLOR`, or `TERM=dumb`, turns colours off",
};

/** `docs/reference/configuration.md`: every key of the policy files, every environment variable. */
export async function configurationPage(): Promise<string> {
  checkVariables();
  const schemas = jsonSchemas() as Readonly<Record<string, JsonSchema>>;
  const files = ["ratelimits", "breakers", "identities"].flatMap(name => fileSections(name, schemas[name] ?? {}));
  const shortNames = [...SHORT_NAMES].map(([short, long]) => `${code(short)} for ${code(long)}`);
  return page(
    "Configuration",
    "Three files, each layered on the shipped one: your file changes single fields, environment variables change the result, and flags come last. `docstokg policy explain <host>` prints where each value comes from. The options of `createHub` are in the API reference; the keys of `sources.yaml` are in [ontofetch](ontofetch.md).",
    `A variable or flag that ends in \`…\` takes fields: \`<key>:<value>\`, joined by commas, such as \`max_delay_ms:500,count_head:true\`. In place of \`<host>\` it takes \`service:<name>\` or \`defaults\`; the role may be \`total\`. Shorter names: ${shortNames.join(", ")}.`,
    "Units are the last part of a name: `_ms` milliseconds, `_s` seconds, `_pct` percent.",
    ...files,
    "## Environment variables",
    table(["variable", "meaning"], [...variableRows(), ...(await keyRows())]),
    "An unknown variable that begins with `DOCSTOKG_` is reported at the start, and one that begins with `ONTOFETCH_` is an error. An empty variable sets nothing.",
    "Variables of Node and other programs that have an effect:",
    table(
      ["variable", "meaning"],
      Object.entries(FOREIGN_VARIABLES).map(([name, meaning]) => [name.split(", ").map(code).join(", "), meaning]),
    ),
  );
}

/** Fails for a variable that the program knows and this page does not describe. */
function checkVariables(): void {
  const described = [...DESCRIBED_VARIABLES.keys(), ...Object.keys(OTHER_VARIABLES)];
  const missing = [...VARIABLE_NAMES, ...VARIABLE_PREFIXES].filter(
    name => !described.some(other => other === name || (name.endsWith("__") && other.startsWith(`${name}<`))),
  );
  if (missing.length > 0) throw new Error(`the configuration page does not describe ${missing.join(", ")}`);
}

function fileSections(name: string, schema: JsonSchema): readonly string[] {
  const sections = keySections(schema);
  return [`## ${name}.yaml`, ...sections.map(section => keyTable(name, section))];
}

function keyTable(file: string, { paths, keys }: KeySection): string {
  const rows = keys.map(({ name, value, fallback, meaning, isScalar }) => {
    const found =
      file === "identities" || !isScalar
        ? { variables: [], flags: [] }
        : overridesOf(file as "ratelimits" | "breakers", paths, name);
    const setBy = [...found.variables, ...found.flags].filter(text => text !== "").map(code);
    return [code(name), value, fallback, setBy.join(", "), meaning];
  });
  const [first = "", ...others] = paths;
  const title = first === "" ? "" : `### ${file}: ${first.replaceAll("<", "\\<")}\n\n`;
  const same = others.length === 0 ? "" : `The same keys in ${others.map(code).join(", ")}.\n\n`;
  return `${title}${same}${table(["key", "value", "default", "variable and flag", "meaning"], rows)}`;
}

function variableRows(): readonly (readonly string[])[] {
  const policy = [...DESCRIBED_VARIABLES].map(([name, sets]) => [code(name), sets]);
  const other = Object.entries(OTHER_VARIABLES).map(([name, meaning]) => [code(name), meaning]);
  const ontofetch = [
    ONTOFETCH_VARIABLES.map(code).join(", "),
    "settings of `ontofetch`; see [its reference](ontofetch.md#environment)",
  ];
  return [...other, ...policy, ontofetch];
}

/** The variables that the shipped identities send to services. */
async function keyRows(): Promise<readonly (readonly string[])[]> {
  const assignments = shippedValues("identities");
  const hosts = new Map<string, string[]>();
  for (const { path, value } of assignments) {
    for (const [, name = ""] of String(value).matchAll(/\{([A-Z][A-Z0-9_]*)\}/g))
      hosts.set(name, [...(hosts.get(name) ?? []), path[1] ?? ""]);
  }
  return [...hosts].map(([name, of]) => [
    code(name),
    `key for ${of.map(code).join(", ")} ([what it gains](services.md#what-a-key-or-an-email-address-gains))`,
  ]);
}
