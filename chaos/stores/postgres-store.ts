/** A PostgreSQL server with the store in a schema of its own. */
import { setTimeout } from "node:timers/promises";
import { PostgresServer } from "../../test/harvest/postgres-server.ts";
import { type FaultKind, type FaultyStore, simpleFault } from "../fault.ts";

const SCHEMA = "chaos";
const nothing = async () => undefined;

export async function startPostgres(): Promise<FaultyStore> {
  const server = await PostgresServer.start();
  const start = () => server.start();
  const run = async (sql: string) => {
    await server.query(sql);
  };
  return {
    url: `postgres://docstokg@127.0.0.1:${server.port}/postgres?schema=${SCHEMA}`,
    ports: [server.port],
    faults: [
      simpleFault("restart", [0, 4000], () => server.kill("SIGINT"), start),
      simpleFault("server-killed", [0, 4000], () => server.kill(), start),
      simpleFault("connections-ended", [0, 0], () => run(END_CONNECTIONS), nothing),
      simpleFault("truncated", [0, 0], () => run(`TRUNCATE ${TABLES}`), nothing),
      // The next process that connects creates the schema again.
      simpleFault("dropped", [0, 0], () => run(`DROP SCHEMA ${SCHEMA} CASCADE`), nothing),
      locked(server),
    ],
    missing: [],
    close: () => server.stop(),
  };
}

const END_CONNECTIONS = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE application_name = 'docstokg' AND pid <> pg_backend_pid()`;
const TABLES = ["budgets", "budget_members", "budget_turns", "budget_leases", "budget_stamps", "processes", "records"]
  .map(table => `${SCHEMA}.${table}`)
  .join(", ");

/** An administrator holds the lock of a table, as VACUUM FULL does. */
function locked(server: PostgresServer): FaultKind {
  return {
    name: "locked",
    draw: random => {
      const durationMs = random.whole(300, 5000);
      let lock: Promise<unknown> = Promise.resolve();
      return {
        ...{ name: "locked", detail: "", separated: 0, returnsStore: true },
        // The lock ends by itself, with its transaction.
        durationMs: 0,
        begin: async () => {
          lock = server.query(
            `BEGIN; LOCK TABLE ${SCHEMA}.budgets IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(${durationMs / 1000}); COMMIT`,
          );
          await setTimeout(0);
        },
        end: async () => {
          await lock;
        },
      };
    },
  };
}
