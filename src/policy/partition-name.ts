/**
 * Names of the budgets and breakers of one partition: the common name, and a hash, because a partition may be a key.
 */
import { textHash } from "../core/text/text-hash.ts";

const PARTITION = /^(.+)#[0-9a-f]{16}$/;

export function partitionName(name: string, partition: string): string {
  return `${name}#${textHash(partition)}`;
}

/** The common name; undefined when the name is not that of a partition. */
export function nameWithoutPartition(name: string): string | undefined {
  // Runs for each call, and few names have a partition: `includes` is faster than the expression.
  return name.includes("#") ? PARTITION.exec(name)?.[1] : undefined;
}

/** The common name, or the name itself when it is not that of a partition. */
export function commonName(name: string): string {
  return nameWithoutPartition(name) ?? name;
}
