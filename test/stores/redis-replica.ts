/** A replica of a Redis server behind a link that can lead to either of them. */
import { StoreError } from "../../src/errors.ts";
import { BreakableLink } from "./breakable-link.ts";
import { eventually } from "./eventually.ts";
import { RedisServer } from "./redis-server.ts";

export class ReplicatedServer implements AsyncDisposable {
  readonly primary: RedisServer;
  readonly replica: RedisServer;
  readonly #link: BreakableLink;

  static async start(): Promise<ReplicatedServer> {
    const primary = await RedisServer.start();
    const replica = await RedisServer.start("--replicaof", `127.0.0.1 ${primary.port}`);
    return new ReplicatedServer(primary, replica, await BreakableLink.to(primary.port));
  }

  private constructor(primary: RedisServer, replica: RedisServer, link: BreakableLink) {
    this.primary = primary;
    this.replica = replica;
    this.#link = link;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.#link.port}`;
  }

  /** Resolves when the replica has all data that the primary has now. */
  async hasCaughtUp(): Promise<void> {
    this.primary.cli("config", "set", "repl-diskless-sync-delay", "0");
    const offset = offsetOf(this.primary, "master_repl_offset");
    await eventually(async () => {
      const isConnected = this.replica.cli("info", "replication").includes("master_link_status:up");
      if (!isConnected || offsetOf(this.replica, "slave_repl_offset") < offset)
        throw new StoreError("the replica lags behind");
    });
  }

  /** The replica does not follow the primary any more, which goes on. */
  detach(): void {
    this.replica.cli("replicaof", "no", "one");
  }

  /** All connections are closed, and new ones lead to the former replica. */
  promote(): void {
    this.#link.target = this.replica.port;
    this.primary.cli("client", "kill", "type", "normal");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#link.close();
    await Promise.all([this.primary.stop(), this.replica.stop()]);
  }
}

function offsetOf(server: RedisServer, name: string): number {
  return Number(new RegExp(`^${name}:(\\d+)`, "m").exec(server.cli("info", "replication"))?.[1] ?? -1);
}
