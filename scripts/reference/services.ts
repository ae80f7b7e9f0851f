import { readFileSync } from "node:fs";
import { isScalar, type Pair, parseDocument, type YAMLMap } from "yaml";
import type { Assignment } from "../../src/policy/layer.ts";
import { ROLES } from "../../src/policy/roles.ts";
import { shippedValues } from "../../src/policy/shipped-policy.ts";
import { code, escaped, page, table } from "./markdown.ts";

const BUDGETS = ["total", ...ROLES] as const;
type Budget = (typeof BUDGETS)[number];

/** What the shipped files say about one host or service. */
interface Entry {
  readonly name: string;
  readonly kind: "host" | "service";
  readonly members: readonly string[];
  /** The comment above the entry. */
  readonly about: string;
  /** Values by `total.rates`, `with.NCBI_API_KEY.metadata.rates`, and so on. */
  readonly values: ReadonlyMap<string, Assignment>;
  /** Names of keys, and `mailto`, that change its limits. */
  readonly tiers: readonly string[];
}

/** `docs/reference/services.md`: the shipped limits with their sources, and what a key or email address gains. */
export async function servicesPage(): Promise<string> {
  const assignments = shippedValues("ratelimits");
  const entries = entriesOf(assignments);
  const identities = shippedValues("identities");
  return page(
    "Services and their limits",
    `The limits that the package ships for ${entries.length} hosts and services, from \`configs/networking/ratelimits.yaml\`. Each number has its source, and the date of that source or the day it was read.`,
    "**total** is the limit of the provider over all roles. A role (**metadata**, **landing**, **artifact**) is the part of it that docstokg uses, mostly a fifth below. A role without a row has the rates of `defaults`, below the total. Your own file, the environment and flags override single numbers ([policy](../guides/policy.md)). `docstokg policy check` says which sources are older than 180 days.",
    "`docstokg policy explain <host>` prints the numbers that apply on your machine. If a server announces lower limits while a program runs, the lower limits apply (event `limit_learned`), and the summary of `docstokg run` names them once.",
    "## What a key or an email address gains",
    gainsTable(entries, identities),
    "`mailto` is your address in `DOCSTOKG_MAILTO`; the other names are environment variables. [Identification](../guides/identification.md) describes how they are sent, and to which hosts only.",
    "## Hosts and services",
    ...entries.map(entrySection),
  );
}

function entriesOf(assignments: readonly Assignment[]): readonly Entry[] {
  const comments = commentsAbove();
  const names = [
    ...new Set(assignments.filter(({ path }) => isEntry(path)).map(({ path }) => `${path[0]} ${path[1]}`)),
  ];
  return names.map((key): Entry => {
    const [section = "", name = ""] = key.split(" ");
    const own = assignments.filter(({ path }) => path[0] === section && path[1] === name);
    const values = new Map(own.map(assignment => [assignment.path.slice(2).join("."), assignment]));
    const members = values.get("members")?.value;
    return {
      name,
      kind: section === "hosts" ? "host" : "service",
      members: Array.isArray(members) ? members.map(String) : [],
      about: comments.get(key) ?? "",
      values,
      tiers: [
        ...new Set(own.flatMap(({ path: [, , key, tier] }) => (key === "with" && tier !== undefined ? tier : []))),
      ],
    };
  });
}

function isEntry(path: readonly string[]): boolean {
  return path.length > 2 && (path[0] === "hosts" || path[0] === "services");
}

/** The comments above hosts and services. A comment above a group of entries, drawn as a line, is not one of them. */
function commentsAbove(): ReadonlyMap<string, string> {
  const file = new URL("../../configs/networking/ratelimits.yaml", import.meta.url);
  const document = parseDocument(readFileSync(file, "utf8"));
  const comments = new Map<string, string>();
  for (const section of ["hosts", "services"]) {
    const map = document.get(section) as YAMLMap;
    // The comment above the first entry belongs to the map.
    let above = map.commentBefore ?? "";
    for (const { key } of map.items as Pair[]) {
      if (!isScalar(key)) continue;
      above = key.commentBefore ?? above;
      const paragraphs = above.split(/\n\s*\n/).map(text => text.replace(/\s*\n\s*/g, " ").trim());
      comments.set(`${section} ${key.value}`, paragraphs.filter(text => text !== "" && !text.includes("──")).join(" "));
      above = "";
    }
  }
  return comments;
}

function gainsTable(entries: readonly Entry[], identities: readonly Assignment[]): string {
  const rows = entries.flatMap(entry =>
    entry.tiers.map(tier => {
      const gains = BUDGETS.flatMap(budget => gain(entry, tier, budget));
      return [code(entry.name), code(tier), gains.join("; ")];
    }),
  );
  const needed = keysWithoutTier(entries, identities).map(({ host, tier }) => [
    code(host),
    code(tier),
    "the limits stay the same; the service requires it or asks for it",
  ]);
  return table(["service", "with", "gains"], [...rows, ...needed]);
}

function gain(entry: Entry, tier: string, budget: Budget): readonly string[] {
  return (["rates", "max_concurrent"] as const).flatMap(key => {
    const after = entry.values.get(`with.${tier}.${budget}.${key}`)?.value;
    if (after === undefined) return [];
    const before = entry.values.get(`${budget}.${key}`)?.value;
    const text = key === "rates" ? `${budget} ${shown(after)}` : `${budget} ${String(after)} at a time`;
    return [before === undefined ? text : `${text} (without: ${shown(before)})`];
  });
}

/** Hosts whose identity has a key or the address, but whose limits do not depend on it. */
function keysWithoutTier(entries: readonly Entry[], identities: readonly Assignment[]) {
  return identities
    .filter(({ path }) => path[0] === "hosts" && (path[2] === "query" || path[2] === "headers"))
    .flatMap(({ path, value }) => {
      const host = path[1] ?? "";
      const names = [...String(value).matchAll(/\{(mailto|[A-Z_][A-Z0-9_]*)\}/g)].map(([, name = ""]) => name);
      return names.map(tier => ({ host, tier }));
    })
    .filter(
      ({ host, tier }) =>
        !entries.some(({ name, members, tiers }) => (name === host || members.includes(host)) && tiers.includes(tier)),
    );
}

function entrySection({ name, kind, members, about, values, tiers }: Entry): string {
  const rowOf = (prefix: string, label: string) =>
    BUDGETS.flatMap(budget => {
      const at = (key: string) => values.get(`${prefix}${budget}.${key}`);
      const [rates, concurrent, delay] = [at("rates"), at("max_concurrent"), at("max_delay_ms")];
      const note = (rates ?? concurrent ?? delay)?.note;
      if (rates === undefined && concurrent === undefined) return [];
      return [
        [
          `${budget}${label}`,
          rates === undefined ? "" : shown(rates.value),
          concurrent === undefined ? "" : String(concurrent.value),
          delay === undefined ? "" : String(delay.value),
          note ?? "",
        ],
      ];
    });
  const rows = [...rowOf("", ""), ...tiers.flatMap(tier => rowOf(`with.${tier}.`, `, with ${code(tier)}`))];
  const of = members.length === 0 ? "" : `Members: ${members.map(code).join(", ")}.\n\n`;
  const intro = about === "" ? "" : `${escaped(about)}\n\n`;
  const title = kind === "host" ? name : `Service ${name}`;
  return `### ${title}\n\n${intro}${of}${table(["role", "rates", "at a time", "max_delay_ms", "source"], rows)}`;
}

function shown(value: unknown): string {
  return Array.isArray(value) ? value.join(" + ") : String(value);
}
