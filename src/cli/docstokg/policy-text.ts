import { withoutCredentials } from "../../core/text/passwords.ts";
import type { ExplainedValue } from "../../policy/explanation.ts";
import type { LoadedPolicy } from "../../policy/load.ts";
import type { BreakerRow, PolicyRow, ServiceRow } from "../../policy/policy-row.ts";
import { formatPairs, formatTable } from "../output/table.ts";

/** Width of the terminal; undefined in a pipe or a file. */
type Columns = number | undefined;

/** The settings that hold for every host, for JSON. */
export interface PolicySettings {
  readonly backend: string;
  /** What calls do while the store of the limits does not answer. */
  readonly whenStoreAway: "share" | "wait" | "refuse";
  /** The largest number of processes that share the store; null if it is not set. */
  readonly fleetSize: number | null;
  /** Null for no maximum. */
  readonly maxInFlight: number | null;
  readonly aimd: boolean;
  /** Null if it is disabled. */
  readonly rollingWindow: {
    readonly thresholdFailures: number;
    readonly windowS: number;
    readonly cooldownS: number;
    /** Null if slow calls do not count. */
    readonly slowCalls: { readonly slowerThanMs: number; readonly share: number; readonly minCalls: number } | null;
  } | null;
  readonly jitterMs: number;
  readonly adaptiveReset: boolean;
  readonly failureStatuses: readonly number[];
  readonly neutralStatuses: readonly number[];
  /** `none` if breakers use the backend of the limits. */
  readonly breakerStore: string;
}

const AWAY_TEXTS = {
  share: "share: each process uses its share of each limit",
  wait: "wait: calls are queued until the store is back",
  refuse: "refuse: calls fail at once",
} as const;

/** `cooldown_store.backend: none`, in every command that prints it. */
const NO_COOLDOWN_STORE = "none (same as backend)";
const SLOTS = "the lowest max_concurrent of the role and of the totals that include it";

export function policySettings({ ratelimits, breakers }: LoadedPolicy): PolicySettings {
  const { aimd, maxInFlight } = ratelimits.resolved;
  const { rollingWindow, jitterMs, isAdaptive, rules } = breakers.resolved;
  const { threshold, windowUs, cooldownMs, slowCalls } = rollingWindow;
  const { kind = "memory", dsn = "", when_store_away = "share", fleet_size = null } = ratelimits.options.backend ?? {};
  const { backend = "none", dsn: storeDsn = "" } = breakers.options.advanced?.cooldown_store ?? {};
  return {
    backend: storeText(kind, dsn),
    whenStoreAway: when_store_away,
    fleetSize: fleet_size,
    maxInFlight: Number.isFinite(maxInFlight) ? maxInFlight : null,
    aimd: aimd.enabled,
    rollingWindow: rollingWindow.enabled
      ? {
          thresholdFailures: threshold,
          windowS: windowUs / 1e6,
          cooldownS: cooldownMs / 1000,
          slowCalls: slowCalls
            ? { slowerThanMs: slowCalls.slowUs / 1000, share: slowCalls.share, minCalls: slowCalls.minCalls }
            : null,
        }
      : null,
    jitterMs,
    adaptiveReset: isAdaptive,
    failureStatuses: [...rules.failureStatuses],
    neutralStatuses: [...rules.neutralStatuses],
    breakerStore: storeText(backend, storeDsn),
  };
}

export function settingsText(settings: PolicySettings, columns: Columns): string {
  const { maxInFlight, rollingWindow, breakerStore } = settings;
  return formatPairs(
    [
      ["backend", settings.backend],
      ...sharingRows(settings),
      ["in flight", maxInFlight === null ? "not limited" : `at most ${maxInFlight} requests over all hosts`],
      ["AIMD", onOff(settings.aimd)],
      ["rolling window", rollingText(rollingWindow)],
      ["trial jitter", `up to ${settings.jitterMs} ms`],
      ["adaptive reset", onOff(settings.adaptiveReset)],
      ["failure statuses", settings.failureStatuses.join(", ") || "(none)"],
      ["neutral statuses", settings.neutralStatuses.join(", ") || "(none)"],
      ["cooldown store", breakerStore === "none" ? NO_COOLDOWN_STORE : breakerStore],
    ],
    { columns },
  );
}

function rollingText(rollingWindow: PolicySettings["rollingWindow"]): string {
  if (rollingWindow === null) return "off";
  const { thresholdFailures, windowS, cooldownS, slowCalls } = rollingWindow;
  const failures = `${thresholdFailures} failures in ${windowS} s`;
  if (slowCalls === null) return `${failures} start a cooldown of ${cooldownS} s`;
  const { slowerThanMs, share, minCalls } = slowCalls;
  const slow = `${Number((share * 100).toFixed(2))} % of the calls (at least ${minCalls}) slower than ${slowerThanMs} ms`;
  return `${failures}, or ${slow}, start a cooldown of ${cooldownS} s`;
}

/** Only a shared store can be away. */
function sharingRows({ backend, whenStoreAway, fleetSize }: PolicySettings): [string, string][] {
  if (backend === "memory") return [];
  return [
    ["store away", AWAY_TEXTS[whenStoreAway]],
    ["fleet size", fleetSize === null ? "not set" : `at most ${fleetSize} processes`],
  ];
}

export function limitsTable(rows: readonly PolicyRow[], columns: Columns): string {
  const cells = rows.map(row => [
    row.host,
    row.role,
    row.rates || "unlimited",
    row.maxDelayMs === undefined ? "" : `${row.maxDelayMs} ms`,
    // "no" means not counted: the longer text would make the table wider than 80 columns.
    row.countsHead === undefined ? "" : row.countsHead ? "counted" : "no",
    row.maxConcurrent === undefined ? "" : String(row.maxConcurrent),
    row.mode ?? "",
  ]);
  const header = ["limits", "role", "rates", "max delay", "HEAD", "slots", "mode"];
  return `${sectionedTable(header, cells, columns)}\n${textLines(`slots: ${SLOTS}`, columns).join("\n")}\n`;
}

/** The slots of the explained role, which its totals can lower: `slots: 4, the lowest …`. Empty for no maximum. */
export function slotsText(values: readonly ExplainedValue[], columns: Columns): string {
  const maxima = values.flatMap(({ field, value }) =>
    /(?:^|\.)max_concurrent$/.test(field) && typeof value === "number" ? [value] : [],
  );
  return maxima.length === 0 ? "" : `\n${textLines(`slots: ${Math.min(...maxima)}, ${SLOTS}`, columns).join("\n")}\n`;
}

export function breakersTable(rows: readonly BreakerRow[], columns: Columns): string {
  const cells = rows.map(row => [
    row.name,
    row.role ?? "",
    `${row.failMax} / ${row.resetS} s`,
    row.retryAfterCapS === undefined ? "" : `${row.retryAfterCapS} s`,
    String(row.trialCalls),
    row.mode ?? "",
  ]);
  const header = ["breakers", "role", "failures / reset", "Retry-After cap", "trial calls", "mode"];
  return sectionedTable(header, cells, columns);
}

export function servicesTable(services: readonly ServiceRow[], columns: Columns): string {
  const cells = services.map(({ name, members }) => [name, members.join(", ") || "each host separately (per_host)"]);
  return formatTable(["service", "members"], cells, { columns });
}

/** Every source of every value, weakest first; the effective one is marked. */
export function sourcesTable(values: readonly ExplainedValue[], columns: Columns): string {
  const rows = values.flatMap(({ field, sources }) =>
    sources.map(({ where, path, value }, index) => {
      const mark = index === sources.length - 1 ? "=" : "";
      return [field, mark, valueText(value, field), path === "" ? where : `${where}  ${path}`];
    }),
  );
  const header = ["setting", "", "value", "source (= marks the effective value)"];
  const table = formatTable(header, rows, { hidesRepeats: true });
  return fits(table, columns) ? table : values.map(value => sourceLines(value, columns)).join("");
}

export function isThrottles(field: string): boolean {
  return field.endsWith("breaker.throttles");
}

/** The rules that recognise throttles, with their sources: in a table they would make a column too wide. */
export function throttlesText(values: readonly ExplainedValue[], columns: Columns): string {
  const lines = values.flatMap(({ value, sources }) => {
    const { where = "", path = "" } = sources.at(-1) ?? {};
    return [
      ...[value].flat().flatMap(rule => textLines(String(rule), columns)),
      ...textLines(`${where}  ${path}`, (columns ?? Number.POSITIVE_INFINITY) - 4).map(line => `    ${line}`),
    ];
  });
  return lines.length === 0 ? "" : `\nthrottle rules, all of them apply\n\n${lines.join("\n")}\n`;
}

/** The YAML comments after the effective values, which name the source of a number and its date; empty without them. */
export function notesText(values: readonly ExplainedValue[], columns: Columns): string {
  const fieldsByNote = new Map<string, string[]>();
  for (const { field, sources } of values) {
    const { note } = sources.at(-1) ?? {};
    if (note !== undefined) fieldsByNote.set(note, [...(fieldsByNote.get(note) ?? []), field]);
  }
  const lines = [...fieldsByNote].flatMap(([note, fields]) => [
    ...textLines(fields.join(", "), columns),
    ...textLines(note, (columns ?? Number.POSITIVE_INFINITY) - 4).map(line => `    ${line}`),
  ]);
  return lines.length === 0 ? "" : `\nsources of the effective numbers\n\n${lines.join("\n")}\n`;
}

/** One value in lines, for terminals that are too narrow for the table. */
function sourceLines({ field, sources }: ExplainedValue, columns = Number.POSITIVE_INFINITY): string {
  const lines = sources.flatMap(({ where, path, value }, index) => {
    const mark = index === sources.length - 1 ? "=" : " ";
    const source = `${where}  ${path}`.trimEnd();
    const locations = source.length + 4 <= columns ? [source] : [where, path];
    return [
      ...textLines(valueText(value, field), columns - 2).map((text, line) => `${line === 0 ? mark : " "} ${text}`),
      ...locations.flatMap(location => textLines(location, columns - 4)).map(text => `    ${text}`),
    ];
  });
  return [...textLines(field, columns), ...lines].map(line => `${line}\n`).join("");
}

/** Lines of at most `width` characters, broken after a space or a dot where there is one. */
export function textLines(text: string, width = Number.POSITIVE_INFINITY): readonly string[] {
  if (text.length <= width) return text === "" ? [] : [text];
  const head = text.slice(0, Math.max(1, width));
  const end = Math.max(head.lastIndexOf(" "), head.lastIndexOf(".")) + 1 || head.length;
  return [text.slice(0, end).trimEnd(), ...textLines(text.slice(end).trimStart(), width)];
}

/**
 * A table whose first column names the section of a row. If it is too wide, each section gets a line of its own above
 * its rows; if that is too wide as well, `formatTable` prints its layout for narrow terminals.
 */
function sectionedTable(header: readonly string[], rows: readonly (readonly string[])[], columns: Columns): string {
  const table = formatTable(header, rows, { hidesRepeats: true });
  if (fits(table, columns)) return table;
  const [title = "", ...inner] = header;
  const [innerHeader = "", ...lines] = formatTable(
    inner,
    rows.map(([, ...cells]) => cells),
  ).split("\n");
  const sections = rows.flatMap(([section = ""], index) => [
    ...(rows[index - 1]?.[0] === section ? [] : [section]),
    `  ${lines[index]}`,
  ]);
  const sectioned = [title, `  ${innerHeader}`, ...sections].map(line => `${line}\n`).join("");
  return fits(sectioned, columns) ? sectioned : formatTable(header, rows, { columns });
}

function fits(text: string, columns: Columns): boolean {
  return columns === undefined || text.split("\n").every(line => line.length <= columns);
}

function valueText(value: unknown, field: string): string {
  if (field === "breaker.cooldown_store.backend" && value === "none") return NO_COOLDOWN_STORE;
  const text = Array.isArray(value) ? value.join(typeof value[0] === "number" ? ", " : " + ") : String(value);
  return text === "" ? "(empty)" : text;
}

function storeText(kind: string, dsn: string): string {
  return dsn === "" ? kind : `${kind} ${withoutCredentials(dsn)}`;
}

function onOff(isOn: boolean): string {
  return isOn ? "on" : "off";
}
