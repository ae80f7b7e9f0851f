/** The name of the row that collects hosts beyond the limit of a table. */
export const OTHER_HOSTS = "(other hosts)";
