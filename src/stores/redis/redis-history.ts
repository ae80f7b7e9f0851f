import { hostAndPort } from "../../core/text/host.ts";
import { replyWithin } from "../reply-within.ts";
import { connectNode, orDestroy, type RedisNode, type RedisNodeOptions } from "./redis-node.ts";
import type { RedisHost } from "./redis-url.ts";

/** The history of at most this many budgets is kept. */
const KEPT_MAX = 16_384;

/** A connection to a server with data. */
export interface DataNode extends RedisNode {
  /**
   * Identifies the server's data (`master_replid`). It changes with each start and each promotion of the server: then
   * the server may lack the last changes that were confirmed before. If the user may not run INFO, the address is used
   * instead, which changes with a promotion but not with a restart.
   */
  readonly history: string;
}

export async function connectData(address: RedisHost, options: RedisNodeOptions): Promise<DataNode> {
  const node = await connectNode(address, options);
  return { ...node, history: await orDestroy(node, historyOf(node, options)) };
}

async function historyOf(node: RedisNode, options: RedisNodeOptions): Promise<string> {
  const address = hostAndPort(node.address.host, node.address.port);
  const timeoutError = () => new Error(`${address} did not answer in time`);
  try {
    const text = String(await replyWithin(options, node.send(["INFO", "replication"]), timeoutError));
    const [, id = address] = /^master_replid:(\w+)/m.exec(text) ?? [];
    // A replica has the id of its primary until it is promoted. The promotion may come just after this reply.
    return /^role:slave/m.test(text) ? `replica ${id}` : id;
  } catch (error) {
    if (error instanceof Error && error.message.startsWith("NOPERM")) return address;
    throw error;
  }
}

/** The history of the server when it last replied about each budget. */
export class RedisHistories {
  readonly #histories = new Map<string, string>();

  /** Whether the server may lack the last changes of this budget. */
  mayLackChanges(key: string, history: string): boolean {
    return (this.#histories.get(key) ?? history) !== history;
  }

  confirm(key: string, history: string): void {
    if (this.#histories.get(key) === history) return;
    this.#histories.delete(key);
    this.#histories.set(key, history);
    if (this.#histories.size <= KEPT_MAX) return;
    const [oldest = key] = this.#histories.keys();
    this.#histories.delete(oldest);
  }
}
