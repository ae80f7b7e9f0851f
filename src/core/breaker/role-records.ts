import { isSerialAfter } from "./breaker-record.ts";

/** Orders that are recorded by role, each with a version of its own. */
export type RoleRecords<Stored> = Readonly<Record<string, Stored>>;

export interface Versioned {
  readonly serial: number;
}

/**
 * The records after an order for these roles; the same object if every role has a newer one.
 * @param givenUs when the order was given: earlier than `nowUs` if the store was away then
 */
export function orderedByRole<Stored extends Versioned>(
  records: RoleRecords<Stored>,
  roles: readonly string[],
  ordered: (known: Stored | undefined) => Stored,
  nowUs: number,
  givenUs: number,
): RoleRecords<Stored> {
  const given = roles
    .map(role => [role, records[role]] as const)
    .filter(([, known]) => !isSerialAfter(known?.serial ?? 0, givenUs, nowUs))
    .map(([role, known]) => [role, ordered(known)] as const);
  return given.length === 0 ? records : { ...records, ...Object.fromEntries(given) };
}

/** The newest order of each role in either of two records; the first object itself if it lacks none. */
export function newerByRole<Stored extends Versioned>(
  records: RoleRecords<Stored>,
  other: RoleRecords<Stored>,
): RoleRecords<Stored> {
  const newer = Object.entries(other).filter(([role, { serial }]) => serial > (records[role]?.serial ?? 0));
  return newer.length === 0 ? records : { ...records, ...Object.fromEntries(newer) };
}
