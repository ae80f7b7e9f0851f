/**
 * Sends requests with every client at once, each to its own server, and prints as JSON what became of them.
 *
 *   node send-all.ts <way> <requests> <origins as JSON>
 *
 * Ways: `install`, `register` (with --import of src/register.ts), `explicit` (the hub is passed to the client) and
 * `refuse` (installed, and no call may wait).
 */
import { pathToFileURL } from "node:url";
import { createHub } from "../../src/http/create-hub.ts";
import type { Hub } from "../../src/http/hub.ts";
import type { HubEvent } from "../../src/http/hub-options.ts";

type Send = (url: string, hub?: object) => Promise<void>;

export interface ClientResult {
  readonly name: string;
  /** Requests that succeeded. */
  readonly succeeded: number;
  /** The texts of the errors of the others, with those of their causes. */
  readonly errors: readonly string[];
  /** Requests that the hub has seen. */
  readonly seen: number;
}

const [way = "", requests = "", origins = "[]"] = process.argv.slice(2);
const file = pathToFileURL(`${import.meta.dirname}/clients.mjs`).href;
const { clients } = (await import(file)) as { readonly clients: Readonly<Record<string, Send>> };
const servers: readonly string[] = JSON.parse(origins);
const hub = await hubFor();
const seen = new Map<string, number>();
hub.listen((event: HubEvent) => {
  if (event.event_type === "http_request") seen.set(event.host, (seen.get(event.host) ?? 0) + 1);
});
const passed =
  way === "explicit" ? { fetch: hub.fetch, agents: hub.agents(), dispatcher: hub.dispatcher() } : undefined;
if (way === "install") hub.install();
if (way === "refuse") hub.install({ maxWaitMs: 0 });

const sent = await Promise.all(
  Object.entries(clients).map(async ([name, send], index) => {
    const origin = servers[index] ?? "";
    const settled = await Promise.allSettled(
      Array.from({ length: Number(requests) }, (_, number) => send(`${origin}/${number}`, passed)),
    );
    const errors = settled.flatMap(each => (each.status === "rejected" ? [textOf(each.reason)] : []));
    return { name, host: new URL(origin).host, succeeded: settled.length - errors.length, errors };
  }),
);
// A client may be done before its request is closed.
await hub.close();
const results = sent.map(({ host, ...result }): ClientResult => ({ ...result, seen: seen.get(host) ?? 0 }));
process.stdout.write(`${JSON.stringify(results)}\n`, () => process.exit());

async function hubFor(): Promise<Hub> {
  if (way === "register") return (await import("../../src/register.ts")).hub;
  const limits = { metadata: { rates: "5/SECOND", guard_ms: 300, max_delay_ms: 600_000 } };
  const hosts = Object.fromEntries(servers.map(origin => [new URL(origin).host, limits]));
  return createHub({ env: {}, cache: false, policy: { ratelimits: { hosts } } });
}

/** The messages of an error and its causes. */
function textOf(error: unknown): string {
  const texts: string[] = [];
  for (let at: unknown = error; at instanceof Error && texts.length < 8; at = at.cause) texts.push(at.message);
  return texts.join(" <- ");
}
