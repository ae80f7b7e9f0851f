/** Faults of Redis servers that every kind of Redis store has. */
import type { RedisServer } from "../../test/stores/redis-server.ts";
import { type FaultKind, simpleFault } from "../fault.ts";

/** Faults that hit all of these servers at once. `servers` is asked at each fault: a failover changes the primary. */
export function dataFaults(servers: () => readonly RedisServer[]): readonly FaultKind[] {
  const onAll = (...command: readonly string[]) => {
    for (const server of servers()) server.cli(...command);
  };
  const nothing = async () => undefined;
  return [
    simpleFault("flushall", [0, 0], async () => onAll("flushall"), nothing),
    simpleFault("script-flush", [0, 0], async () => onAll("script", "flush"), nothing),
    simpleFault("connections-reset", [0, 0], async () => onAll("client", "kill", "type", "normal"), nothing),
    simpleFault(
      "out-of-memory",
      [500, 4000],
      async () => onAll("config", "set", "maxmemory", "1", "maxmemory-policy", "noeviction"),
      async () => onAll("config", "set", "maxmemory", "0"),
    ),
    simpleFault(
      "eviction",
      [500, 4000],
      async () => onAll("config", "set", "maxmemory", "1", "maxmemory-policy", "allkeys-lru"),
      async () => onAll("config", "set", "maxmemory", "0", "maxmemory-policy", "noeviction"),
    ),
  ];
}

/** The server is silent, for all processes. */
export function hang(servers: () => readonly RedisServer[]): FaultKind {
  let hung: readonly RedisServer[] = [];
  return simpleFault(
    "server-hangs",
    [300, 5000],
    async () => {
      hung = servers();
      for (const server of hung) server.pause();
    },
    async () => {
      for (const server of hung) server.resume();
    },
  );
}
