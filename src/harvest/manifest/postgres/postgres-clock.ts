/** The clock of the database, which all machines share, in milliseconds. `now()` is the start of the transaction. */
export const NOW_MS = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
