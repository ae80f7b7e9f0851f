import type { SqlParameter } from "../../../stores/postgres/postgres-driver.ts";
import type { PostgresConnection } from "./postgres-connection.ts";

/** How many works a transaction changes. It locks them, and a query may last a limited time only. */
const BATCH = 5000;

/**
 * Changes columns of any number of works, in many transactions. All statements that lock several works lock them in the
 * order of their ids, so that they do not deadlock. Works that are added meanwhile are not changed.
 * @param where the works, as in `WHERE`
 * @param columns as in `UPDATE`
 * @param parameters of both, from `$3` on
 * @returns how many works were changed
 */
export async function changeWorks(
  connection: PostgresConnection,
  where: string,
  columns: string,
  parameters: readonly SqlParameter[],
): Promise<number> {
  const [newest] = await connection.read("SELECT coalesce(max(id), 0) AS id FROM works");
  let count = 0;
  for (let lastId = 0; ; ) {
    const { rows } = await connection.write(
      `WITH batch AS (
         SELECT id FROM works WHERE id > $1 AND id <= $2 AND ${where} ORDER BY id LIMIT ${BATCH} FOR UPDATE),
       changed AS (UPDATE works SET ${columns} FROM batch WHERE works.id = batch.id RETURNING works.id)
       SELECT count(*) AS works, max(id) AS last FROM changed`,
      [lastId, Number(newest?.["id"]), ...parameters],
    );
    const works = Number(rows[0]?.["works"]);
    count += works;
    if (works < BATCH) return count;
    lastId = Number(rows[0]?.["last"]);
  }
}
