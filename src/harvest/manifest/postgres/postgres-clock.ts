/** SQL for the time of the database server, in milliseconds. Not `now()`, which is the start of the transaction. */
export const NOW_MS = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
