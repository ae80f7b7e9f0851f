import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { PostgresServer, whyNoPostgres } from "../../../test/harvest/postgres-server.ts";
import fc from "../../../test/seeded-fast-check.ts";
import { one } from "../../../test/stores/requests.ts";
import { StoreError } from "../../errors.ts";
import { systemTime } from "../../time/system-time.ts";
import type { LeaseRequest } from "../store.ts";
import { PostgresClient } from "./postgres-client.ts";
import { loadPgDriver } from "./postgres-driver.ts";
import { PostgresExchanges } from "./postgres-exchanges.ts";
import { prepareTables } from "./postgres-tables.ts";

const SCHEMA = "lost_replies";
const HOUR_MS = 3_600_000;
const LIMIT = 20;

/**
 * What happens to a statement: it arrives and is answered, it never arrives, its reply is lost, or it is delayed until
 * the process has sent its next statement.
 */
type Link = "ok" | "request lost" | "reply lost" | "late";

interface Step {
  readonly wanted: number;
  readonly written: number;
  readonly returned: number;
  /** For the statements of the step, in their order; "ok" for further ones. */
  readonly links: readonly Link[];
}

const LINK: fc.Arbitrary<Link> = fc.oneof(
  { weight: 3, arbitrary: fc.constant<Link>("ok") },
  { weight: 1, arbitrary: fc.constant<Link>("request lost") },
  { weight: 2, arbitrary: fc.constant<Link>("reply lost") },
  { weight: 1, arbitrary: fc.constant<Link>("late") },
);
const STEP: fc.Arbitrary<Step> = fc.record({
  wanted: fc.nat({ max: 6 }),
  written: fc.nat({ max: 3 }),
  returned: fc.nat({ max: 3 }),
  links: fc.array(LINK, { maxLength: 2 }),
});

/** A client whose statements are lost as `links` says. */
class LossyClient implements Pick<PostgresClient, "query"> {
  links: Link[] = [];
  readonly #client: PostgresClient;
  #late: (() => Promise<unknown>) | undefined;

  constructor(client: PostgresClient) {
    this.#client = client;
  }

  async query(...[sql, parameters]: Parameters<PostgresClient["query"]>): ReturnType<PostgresClient["query"]> {
    const link = this.links.shift() ?? "ok";
    const late = this.#late;
    this.#late = link === "late" ? () => this.#client.query(sql, parameters) : undefined;
    const results = link === "ok" || link === "reply lost" ? await this.#client.query(sql, parameters) : undefined;
    // The process has given up the late statement, so the server may refuse it.
    await late?.().catch(() => undefined);
    if (link !== "ok" || results === undefined) throw new StoreError(link);
    return results;
  }
}

/** A process that uses units of one budget as `sharing/` does: it repeats a settlement until it gets a reply. */
class LeasingProcess {
  readonly #client: LossyClient;
  readonly #exchanges: PostgresExchanges;
  readonly #budget: LeaseRequest;
  /** Units that were granted and not settled. */
  #leased = 0;
  #written = 0;
  #pending = { written: 0, returned: 0 };

  constructor(client: PostgresClient, processId: string, key: string) {
    this.#client = new LossyClient(client);
    this.#exchanges = new PostgresExchanges({
      ...{ client: this.#client, processId, lastNumber: 0, leaseUs: 30_000_000, serverUs: () => 1_700_000_000_000_000 },
    });
    this.#budget = { ...one(key, LIMIT, HOUR_MS), wantsUse: true };
  }

  async exchange({ wanted, written, returned, links }: Step): Promise<void> {
    const now = { written: Math.min(written, this.#leased), returned: 0 };
    now.returned = Math.min(returned, this.#leased - now.written);
    this.#leased -= now.written + now.returned;
    this.#written += now.written;
    this.#pending.written += now.written;
    this.#pending.returned += now.returned;
    this.#client.links = [...links];
    const keys = this.#budget.claims.map(({ key }) => key);
    const request = { ...this.#budget, least: 1, most: Math.max(1, wanted) };
    try {
      const [reply] = await this.#exchanges.exchange([{ keys, ...this.#pending }], [request], [], []);
      this.#pending = { written: 0, returned: 0 };
      if (reply?.kind === "granted") this.#leased += reply.units;
      assert.deepEqual(reply?.use, [[this.#written + this.#leased]]);
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
    }
  }
}

describe("exchanges with PostgreSQL", { skip: whyNoPostgres() }, () => {
  let server: PostgresServer;
  let client: PostgresClient;
  let processes = 0;
  before(async () => {
    server = await PostgresServer.start();
    const url = `postgres://docstokg@127.0.0.1:${server.port}/postgres`;
    const driver = await loadPgDriver({ url, schema: SCHEMA, idleInTransactionMs: 0 });
    client = new PostgresClient({ driver, time: systemTime, timeoutMs: 600_000 }, session =>
      prepareTables(session, SCHEMA),
    );
  });
  after(async () => {
    await client?.close();
    await server?.stop();
  });

  async function run(steps: readonly Step[]): Promise<void> {
    processes += 1;
    const leasing = new LeasingProcess(client, `p${processes}`, `k${processes}`);
    for (const step of steps) await leasing.exchange(step);
    await leasing.exchange(STEP_WITHOUT_LOSS);
  }

  test("two lost replies in a row apply a settlement once", async () => {
    const repeat = { wanted: 0, written: 0, returned: 0 };
    await run([
      { ...STEP_WITHOUT_LOSS, wanted: 4 },
      { ...repeat, returned: 2, links: ["reply lost"] },
      { ...repeat, links: ["ok", "request lost"] },
    ]);
  });

  test("a question about a lost exchange whose reply is lost too can be repeated", async () => {
    const repeat = { wanted: 0, written: 0, returned: 0 };
    await run([
      { ...STEP_WITHOUT_LOSS, wanted: 4 },
      { ...repeat, returned: 3, links: ["reply lost"] },
      { ...repeat, links: ["reply lost"] },
    ]);
  });

  test("units that no process got are returned once, however often that exchange is lost", async () => {
    const repeat = { wanted: 0, written: 0, returned: 0 };
    await run([
      { ...STEP_WITHOUT_LOSS, wanted: 4 },
      { ...repeat, wanted: 5, links: ["reply lost"] },
      { ...repeat, links: ["ok", "request lost"] },
      { ...repeat, links: ["ok", "reply lost"] },
      STEP_WITHOUT_LOSS,
      { ...STEP_WITHOUT_LOSS, returned: 3 },
    ]);
  });

  test("the store counts each unit once, whatever requests and replies are lost or late", async () => {
    await fc.assert(fc.asyncProperty(fc.array(STEP, { maxLength: 20 }), run), { numRuns: 100 });
  });
});

const STEP_WITHOUT_LOSS: Step = { wanted: 1, written: 0, returned: 0, links: [] };
