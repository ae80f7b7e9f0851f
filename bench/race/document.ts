/** Writes `docs/benchmarks.md` from the stored results. */
import type { Figure } from "../kit/report.ts";
import { CLIENTS, clientSpecOf } from "./client-spec.ts";
import { figuresOf } from "./figures.ts";
import type { ClientRun, RunOutcome, ScenarioResult } from "./result.ts";
import { RETRY } from "./retry.ts";
import type { Scenario } from "./scenario.ts";

export const CHART_FILE = "race.svg";
const BEGIN = "<!-- race:begin, written by npm run bench:race -->";
const END = "<!-- race:end -->";

/** The document with the text between its markers; a new document if there is none. */
export function placed(text: string, document: string | undefined): string {
  const block = `${BEGIN}\n\n${text}\n\n${END}`;
  if (document === undefined) return `# Benchmarks\n\n${block}\n`;
  const from = document.indexOf(BEGIN);
  const to = document.indexOf(END);
  if (from < 0 || to < from) throw new Error(`the document has no markers: ${BEGIN} and ${END}`);
  return `${document.slice(0, from)}${block}${document.slice(to + END.length)}`;
}

export function documentOf(results: readonly ScenarioResult[], known: readonly Scenario[]): string {
  const scenarioOf = (id: string) => known.find(scenario => scenario.id === id);
  const figures = results.flatMap(result => {
    const scenario = scenarioOf(result.scenario);
    return scenario ? figuresOf(result, scenario) : [];
  });
  const missing = known.filter(({ id }) => !results.some(({ scenario }) => scenario === id));
  return [
    ...environmentTable(results),
    ...(missing.length > 0 ? [`Not run yet: ${missing.map(({ race, title }) => `${race} ${title}`).join(", ")}.`] : []),
    "## At a glance",
    "Makespan as a multiple of the fastest schedule that the limits permit, and in brackets how many requests the server rejected with 429. † marks clients that gave requests up.",
    summaryOf(results, scenarioOf),
    `![Slowness and rejections of every client](${CHART_FILE})`,
    "## Targets",
    figureTable(figures),
    ...results.flatMap(result => [
      `## ${scenarioOf(result.scenario)?.race ?? result.scenario} ${scenarioOf(result.scenario)?.title ?? result.title}`,
      `${scenarioOf(result.scenario)?.what ?? result.what} ${boundNote(result)}`,
      tableOf(result),
    ]),
    "## How each client was set up",
    ...set(results),
    "## How it is measured",
    METHOD,
  ].join("\n\n");
}

function environmentTable(results: readonly ScenarioResult[]): readonly string[] {
  const distinct = (of: (result: ScenarioResult) => string) => [...new Set(results.map(of))];
  const days = distinct(({ date }) => date.slice(0, 10)).toSorted();
  const [first = "never"] = days;
  const when = days.length > 1 ? `${first} to ${days.at(-1)}` : first;
  const versions = Object.assign({}, ...results.map(result => result.versions)) as Record<string, string>;
  const tookMs = results.reduce((sum, result) => sum + result.tookMs, 0);
  return [
    [
      "| | |",
      "|---|---|",
      `| machine | ${distinct(({ machine }) => machine).join("; ")} |`,
      ...loadRow(results),
      `| versions | ${Object.entries(versions)
        .map(([name, version]) => `${name} ${version}`)
        .join(", ")} |`,
      `| date | ${when} |`,
      `| seed | ${distinct(({ seed }) => seed).join(", ")} |`,
      `| command | ${distinct(({ command }) => `\`${command}\``).join(", ")} |`,
      `| took | ${minutes(tookMs)} |`,
    ].join("\n"),
  ];
}

/** The load matters: a server that waits for a CPU sees requests closer together than they were sent. */
function loadRow(results: readonly ScenarioResult[]): readonly string[] {
  const loads = results.flatMap(({ load }) => load ?? []);
  if (loads.length === 0) return [];
  const [least, most] = [Math.min(...loads), Math.max(...loads)].map(load => digits(load, 1));
  return [`| load before a scenario | ${least} to ${most} |`];
}

function summaryOf(results: readonly ScenarioResult[], scenarioOf: (id: string) => Scenario | undefined): string {
  const raced = results.filter(({ scenario }) => scenarioOf(scenario)?.hosts === undefined);
  const heads = raced.map(({ scenario }) => shortName(scenario));
  const rows = CLIENTS.filter(({ id }) => raced.some(({ runs }) => runs.some(run => run.client === id))).map(
    ({ id, name }) => [
      name,
      ...raced.map(({ runs }) => {
        const outcome = runs.find(({ client }) => client === id)?.outcome;
        return outcome ? `${ratio(outcome)} (${outcome.rejections ?? 0})${outcome.failed > 0 ? " †" : ""}` : "";
      }),
    ],
  );
  return markdown(["client", ...heads], rows);
}

function shortName(id: string): string {
  const [race = "", ...rest] = id.split("-");
  return [race.toUpperCase(), ...rest].join(" ");
}

export function tableOf({ runs }: ScenarioResult): string {
  const outcomes = runs.flatMap(({ outcome }) => outcome ?? []);
  if (outcomes.some(({ hosts }) => hosts !== undefined)) return hostsTable(runs);
  const hasOutage = outcomes.some(({ outage }) => outage !== undefined);
  const head = [
    "client",
    "makespan, s",
    "x optimum",
    "rejections",
    "most in a window",
    "attempts per success",
    ...(hasOutage ? ["sent into the outage", "first success after it, s"] : []),
    "given up",
    "CPU, ms/request",
    "memory, MB",
  ];
  const rows = runs.map(({ client, outcome, cannot, note }) => {
    const name = clientSpecOf(client).name;
    if (outcome === undefined) return [name, `cannot: ${cannot}`, ...head.slice(2).map(() => "")];
    return [
      note === undefined ? name : `${name} (${note})`,
      digits(outcome.makespanMs / 1000, 2),
      ratio(outcome),
      String(outcome.rejections ?? 0),
      outcome.busiest ? `${outcome.busiest.count} of ${outcome.busiest.limit}` : "",
      outcome.succeeded > 0 ? digits((outcome.arrivals ?? 0) / outcome.succeeded, 2) : "none succeeded",
      ...(hasOutage
        ? [
            String(outcome.outage?.arrivals ?? 0),
            outcome.outage?.recoveryMs === undefined ? "never" : digits(outcome.outage.recoveryMs / 1000, 2),
          ]
        : []),
      String(outcome.failed),
      digits(outcome.cpuUsPerRequest / 1000, 2),
      digits(outcome.memoryMb, 0),
    ];
  });
  return markdown(head, rows);
}

function hostsTable(runs: readonly ClientRun[]): string {
  const head = ["client", "hosts called", "seconds", "hosts/s", "CPU, us/host", "kept, bytes/host", "peak memory, MB"];
  const rows = runs.map(({ client, outcome, cannot }) => {
    const name = clientSpecOf(client).name;
    if (outcome?.hosts === undefined) return [name, `cannot: ${cannot}`, ...head.slice(2).map(() => "")];
    const { met, bytesPerHost } = outcome.hosts;
    const seconds = outcome.makespanMs / 1000;
    return [
      name,
      met.toLocaleString("en"),
      digits(seconds, 1),
      Math.round(met / seconds).toLocaleString("en"),
      digits(outcome.cpuUsPerRequest, 0),
      digits(bytesPerHost, 0),
      digits(outcome.memoryMb, 0),
    ];
  });
  return markdown(head, rows);
}

function boundNote({ runs }: ScenarioResult): string {
  const outcome =
    runs.find(({ client }) => clientSpecOf(client).isOurs)?.outcome ?? runs.find(run => run.outcome)?.outcome;
  if (outcome === undefined || outcome.hosts !== undefined) return "";
  const { requests, boundMs, politeMs } = outcome;
  const polite = politeMs === boundMs ? "" : `, ${digits(politeMs / 1000, 2)} s for a polite client`;
  return `${requests.toLocaleString("en")} requests; optimum ${digits(boundMs / 1000, 2)} s${polite}.`;
}

function figureTable(figures: readonly Figure[]): string {
  const rows = figures.map(({ what, wanted, measured, isReached }) => [
    isReached ? "reached" : "**missed**",
    what,
    wanted,
    Number.isInteger(measured) ? String(measured) : digits(measured, 3),
  ]);
  return markdown(["", "what", "wanted", "measured"], rows);
}

function set(results: readonly ScenarioResult[]): readonly string[] {
  const took = new Set(results.flatMap(({ runs }) => runs.map(({ client }) => client)));
  const lines = CLIENTS.filter(({ id }) => took.has(id)).map(({ name, how }) => `- **${name}**: ${how}.`);
  return [
    lines.join("\n"),
    `All other clients have the same retry rules: ${RETRY.attempts} attempts; after \`Retry-After\` and a random time of up to ${RETRY.baseMs} ms, or, without it, after a random pause of up to ${RETRY.baseMs} ms, doubled with each attempt up to ${RETRY.capMs / 1000} s. Every attempt waits in the queue of the limiter.`,
  ];
}

const METHOD = `- Every client runs in its own process, and so does the server; no two clients run at the same time. Real HTTP over loopback, except where a scenario says otherwise.
- The server enforces its limit exactly, by its own clock, and answers requests above the limit with 429 and \`Retry-After\` in whole seconds. Rejected requests do not count against the limit.
- The program starts all calls at once. A call that a client gives up is started again, at most twice. Code is loaded and the store is opened before the measurement; connections are new.
- **Optimum**: the time of the last request in the fastest schedule that keeps every window, knows when the server is down or the client is blocked, and needs no time for anything else. **For a polite client**: the same with a guard of 25 ms on every window, and with \`Retry-After\` obeyed, which servers round up, and a mean jitter of 75 ms after it.
- **Most in a window**: of all requests that arrived, rejected ones included, wherever the window begins. **CPU**: of the client's processes from start to end, without deliberate stalls; with so few requests, most of it is compilation. **Memory**: peak memory above that of an idle process.
- A client is **polite** if no request was rejected and no call was given up.`;

/** A client that gave calls up has no comparable makespan. */
function ratio({ makespanMs, boundMs, failed }: RunOutcome): string {
  return failed > 0 ? "-" : digits(makespanMs / boundMs, 2);
}

function markdown(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(cell => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), `|${head.map(() => "---").join("|")}|`, ...rows.map(line)].join("\n");
}

function digits(value: number, most: number): string {
  return value.toLocaleString("en", { maximumFractionDigits: most, minimumFractionDigits: most });
}

function minutes(ms: number): string {
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}
