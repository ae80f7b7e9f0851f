import { StoreError } from "../../errors.ts";
import { replyWithin } from "../reply-within.ts";
import type { CommandFor, RedisDriver, RedisDriverOptions } from "./redis-driver.ts";
import { connectData, type DataNode } from "./redis-history.ts";
import { subscribeAt } from "./redis-node.ts";
import { slotOfKey } from "./redis-slot.ts";
import type { RedisAddress, RedisHost } from "./redis-url.ts";

/** More redirections of one command mean that the nodes disagree about the owner of a slot. */
const MAX_REDIRECTIONS = 5;
/** The shortest time between two attempts to connect to a node. */
const RETRY_US = 50_000;

interface SlotRange {
  readonly from: number;
  readonly to: number;
  readonly owner: RedisHost;
}

/** Connects to the first of the named nodes that answers, and learns from it which node owns which slots. */
export async function connectCluster(address: RedisAddress, options: RedisDriverOptions): Promise<RedisDriver> {
  const cluster = new RedisCluster(address, options);
  try {
    await cluster.discover();
  } catch (error) {
    cluster.destroy();
    throw error;
  }
  return cluster;
}

/**
 * Sends each command to the node that owns the slot of its key. If the connection to a node is lost, the other
 * connections stay. The next command for that node reads the owners of the slots again, and then connects again.
 */
class RedisCluster implements RedisDriver {
  readonly #address: RedisAddress;
  readonly #options: RedisDriverOptions;
  readonly #nodes = new Map<string, Promise<DataNode>>();
  readonly #failed = new Map<string, { readonly error: unknown; readonly untilUs: number }>();
  #ranges: readonly SlotRange[] = [];
  #isStale = false;
  #discovery: Promise<void> | undefined;
  #isDestroyed = false;

  constructor(address: RedisAddress, options: RedisDriverOptions) {
    this.#address = address;
    this.#options = options;
  }

  async send(key: string, commandFor: CommandFor): Promise<unknown> {
    const slot = slotOfKey(key);
    let target = this.#ownerOf(slot);
    if (this.#isStale && (target === undefined || !this.#nodes.has(addressOf(target)))) {
      await this.discover();
      target = this.#ownerOf(slot);
    }
    let isAsking = false;
    for (let redirections = 0; redirections <= MAX_REDIRECTIONS; redirections += 1) {
      if (target === undefined) throw new Error(`CLUSTERDOWN no node owns slot ${slot}`);
      const node = await this.#node(target);
      const command = commandFor(node.history);
      try {
        if (!isAsking) return await node.send(command);
        return (await Promise.all([node.send(["ASKING"]), node.send(command)]))[1];
      } catch (error) {
        // A redirected command has not been executed, so it may be sent again.
        const redirection = redirectionOf(error, target);
        if (redirection === undefined) throw error;
        isAsking = redirection.isAsking;
        target = redirection.target;
        if (!isAsking) await this.discover();
      }
    }
    throw new Error(`slot ${slot} was redirected more than ${MAX_REDIRECTIONS} times`);
  }

  /** Subscribes at one node: every node of a cluster passes on the messages of the others. */
  async subscribe(channel: string, onMessage: () => void, onLost: () => void): Promise<() => void> {
    const owner = this.#ownerOf(slotOfKey(channel));
    if (owner === undefined) throw new Error("CLUSTERDOWN no node owns the slot of the channel");
    const { credentials, tls } = this.#address;
    const { time, timeoutMs } = this.#options;
    return subscribeAt(owner, { credentials, database: 0, tls, timeoutMs, time }, channel, onMessage, onLost);
  }

  abandon(key: string, reason: Error): void {
    const owner = this.#ownerOf(slotOfKey(key));
    if (owner === undefined) return;
    const address = addressOf(owner);
    const node = this.#nodes.get(address);
    if (node === undefined) return;
    this.#forget(address, node, reason);
    closeWhenConnected(node);
    this.#options.onNodeLost(reason);
  }

  destroy(): void {
    this.#isDestroyed = true;
    for (const node of this.#nodes.values()) closeWhenConnected(node);
    this.#nodes.clear();
  }

  /** Reads the owners of all slots from any node. Calls at the same time share one reading. */
  discover(): Promise<void> {
    this.#discovery ??= this.#discover().finally(() => {
      this.#discovery = undefined;
    });
    return this.#discovery;
  }

  async #discover(): Promise<void> {
    const known = new Map<string, RedisHost>();
    for (const { owner } of this.#ranges) known.set(addressOf(owner), owner);
    for (const host of this.#address.hosts) known.set(addressOf(host), host);
    // Nodes with a connection first: another one may have failed.
    const hosts = [...known.values()].sort((a, b) => Number(this.#isOpen(b)) - Number(this.#isOpen(a)));
    let lastError: unknown;
    for (const host of hosts) {
      try {
        this.#ranges = rangesOf(await this.#askSlots(host), host);
        this.#isStale = false;
        this.#closeUnused();
        return;
      } catch (error) {
        const isUnknownHost = error instanceof Error && "code" in error && error.code === "ENOTFOUND";
        if (lastError === undefined || !isUnknownHost) lastError = error;
        if (error instanceof Error && /^(?:WRONGPASS|NOAUTH|NOPERM|ERR This instance)/.test(error.message)) break;
      }
    }
    throw lastError;
  }

  async #askSlots(host: RedisHost): Promise<unknown> {
    const node = await this.#node(host);
    return replyWithin(this.#options, node.send(["CLUSTER", "SLOTS"]), () => {
      const reason = new Error(`${addressOf(host)} did not answer within ${this.#options.timeoutMs} ms`);
      this.#onLost(addressOf(host), reason);
      node.destroy();
      return reason;
    });
  }

  #isOpen(host: RedisHost): boolean {
    return this.#nodes.has(addressOf(host));
  }

  #ownerOf(slot: number): RedisHost | undefined {
    return this.#ranges.find(({ from, to }) => from <= slot && slot <= to)?.owner;
  }

  #node(host: RedisHost): Promise<DataNode> {
    const address = addressOf(host);
    const existing = this.#nodes.get(address);
    if (existing !== undefined) return existing;
    if (this.#isDestroyed) return Promise.reject(new StoreError("the store is closed"));
    const { time, timeoutMs } = this.#options;
    const failure = this.#failed.get(address);
    if (failure !== undefined && time.monotonicUs() < failure.untilUs) return Promise.reject(failure.error);
    const { credentials, tls } = this.#address;
    const onLost = (error: Error) => this.#onLost(address, error);
    const node = connectData(host, { credentials, database: 0, tls, timeoutMs, time, onLost });
    this.#nodes.set(address, node);
    node.then(
      () => this.#failed.delete(address),
      error => this.#forget(address, node, error),
    );
    return node;
  }

  #onLost(address: string, error: Error): void {
    const node = this.#nodes.get(address);
    if (node === undefined) return;
    this.#forget(address, node, error);
    this.#options.onNodeLost(error);
  }

  #forget(address: string, node: Promise<DataNode>, error: unknown): void {
    if (this.#nodes.get(address) !== node) return;
    this.#nodes.delete(address);
    this.#failed.set(address, { error, untilUs: this.#options.time.monotonicUs() + RETRY_US });
    this.#isStale = true;
  }

  /** Nodes that own no slots any more: replicas, and nodes that have left the cluster. */
  #closeUnused(): void {
    const owners = new Set(this.#ranges.map(({ owner }) => addressOf(owner)));
    for (const [address, node] of this.#nodes) {
      if (owners.has(address)) continue;
      this.#nodes.delete(address);
      closeWhenConnected(node);
    }
    for (const address of this.#failed.keys()) if (!owners.has(address)) this.#failed.delete(address);
  }
}

function closeWhenConnected(node: Promise<DataNode>): void {
  node.then(
    connected => connected.destroy(),
    () => undefined,
  );
}

/** The reply to CLUSTER SLOTS. A node that does not know its own address leaves the host empty. */
function rangesOf(reply: unknown, asked: RedisHost): readonly SlotRange[] {
  if (!Array.isArray(reply)) throw new StoreError("redis: unexpected reply to CLUSTER SLOTS");
  return (reply as readonly (readonly unknown[])[]).map(([from, to, owner]) => {
    const [host, port] = Array.isArray(owner) ? (owner as readonly unknown[]) : [];
    return { from: Number(from), to: Number(to), owner: { host: String(host || asked.host), port: Number(port) } };
  });
}

/** `MOVED 3999 127.0.0.1:6381`: the slot has another owner. `ASK …`: only this command must be sent there. */
function redirectionOf(
  error: unknown,
  from: RedisHost,
): { readonly target: RedisHost; readonly isAsking: boolean } | undefined {
  const [kind, , address = ""] = error instanceof Error ? error.message.split(" ") : [];
  if (kind !== "MOVED" && kind !== "ASK") return undefined;
  const colon = address.lastIndexOf(":");
  const target = { host: address.slice(0, colon) || from.host, port: Number(address.slice(colon + 1)) };
  return { target, isAsking: kind === "ASK" };
}

function addressOf({ host, port }: RedisHost): string {
  return `${host}:${port}`;
}
