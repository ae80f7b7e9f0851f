/** Names of the budgets of one partition: that of the common budget, and a hash, because a partition may be a key. */
import { textHash } from "../core/text/text-hash.ts";

const PARTITION = /^(.+)#[0-9a-f]{16}$/;

export function partitionName(name: string, partition: string): string {
  return `${name}#${textHash(partition)}`;
}

/** The name of the common budget; undefined when the name is not that of a partition. */
export function nameWithoutPartition(name: string): string | undefined {
  return PARTITION.exec(name)?.[1];
}
