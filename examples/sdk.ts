/**
 * An SDK that accepts a `fetch` function, through a hub. The methods of the SDK cannot pass options of the hub, so
 * `hub.with` sets them for every request that is made inside its callback.
 *
 *     node examples/sdk.ts [origin]
 */
import { createHub } from "docstokg";

/** A stand-in for the SDK of a service. */
class LibraryClient {
  readonly #options: { readonly baseUrl: string; readonly fetch: typeof fetch };

  constructor(options: { readonly baseUrl: string; readonly fetch: typeof fetch }) {
    this.#options = options;
  }

  async get(path: string): Promise<unknown> {
    const response = await this.#options.fetch(`${this.#options.baseUrl}${path}`);
    if (!response.ok) throw new Error(`request failed with status ${response.status}`);
    return response.json();
  }
}

const baseUrl = process.argv[2] ?? "https://api.crossref.org";
const limits = { total: { rates: "5/SECOND" }, artifact: { rates: "2/SECOND", max_delay_ms: 60_000 } };
const hub = await createHub({ policy: { ratelimits: { hosts: { [new URL(baseUrl).hostname]: limits } } } });
hub.listen(event => {
  if (event.event_type === "http_request") console.log(`${event.role}: ${event.status}`);
});

const library = new LibraryClient({ baseUrl, fetch: hub.fetch });
await library.get("/types");

const started = performance.now();
const offsets = [0, 1, 2, 3, 4];
await hub.with({ role: "artifact", resolver: "library" }, () =>
  Promise.all(offsets.map(offset => library.get(`/works?rows=1&offset=${offset}`))),
);
console.log(`${offsets.length} artifacts in ${((performance.now() - started) / 1000).toFixed(1)} s`);

await hub.close();
