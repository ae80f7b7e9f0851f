/** Names of the records that processes share. Files and servers hold them, so they never change. */

/**
 * One record for each host, service or partition of them, and for each resolver: `host api.example.org`,
 * `host service arxiv`, `resolver landing_page`.
 */
export type BreakerRecordName = `host ${string}` | `resolver ${string}`;

export const HOST_RECORDS = "host ";
export const RESOLVER_RECORDS = "resolver ";

export function hostRecordName(host: string): BreakerRecordName {
  return `${HOST_RECORDS}${host}`;
}

export function resolverRecordName(resolver: string): BreakerRecordName {
  return `${RESOLVER_RECORDS}${resolver}`;
}

/** The host or service of a record; undefined for a record of anything else. */
export function hostOfRecord(name: string): string | undefined {
  return name.startsWith(HOST_RECORDS) ? name.slice(HOST_RECORDS.length) : undefined;
}

/** The resolver of a record; undefined for a record of anything else. */
export function resolverOfRecord(name: string): string | undefined {
  return name.startsWith(RESOLVER_RECORDS) ? name.slice(RESOLVER_RECORDS.length) : undefined;
}
