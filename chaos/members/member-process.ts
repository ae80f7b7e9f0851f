/**
 * Several hubs that share one key, each as a process of its own would: `node member-process.ts <options as JSON>`.
 * It reports each write to its parent, with the number of the member.
 */
import { createHub } from "../../src/index.ts";
import type { StoreName } from "../../src/stores/open-store.ts";

export interface MemberProcessOptions {
  /** The store of each member. */
  readonly stores: readonly string[];
  /** The number of the first member. */
  readonly first: number;
  readonly origin: string;
  readonly rates: string;
  /** Calls that each member wants to make at the same time. */
  readonly callers: number;
}

/** The requests that each member has completed, and those that failed. */
export interface MemberCounts {
  readonly sent: readonly number[];
  readonly errors: readonly string[];
}

const { stores, first, origin, rates, callers }: MemberProcessOptions = JSON.parse(process.argv[2] ?? "");
const sent = stores.map(() => 0);
const errors: string[] = [];
const MAX_ERRORS = 5;
let isStopping = false;

const hubs: Awaited<ReturnType<typeof createHub>>[] = [];
for (const store of stores) {
  const ratelimits = { extends: "none", defaults: { metadata: { rates, max_delay_ms: 3_600_000 } } } as const;
  const policy = { ratelimits, breakers: { extends: "none" } } as const;
  hubs.push(await createHub({ env: {}, cache: false, retry: false, store: store as StoreName, policy }));
}

process.on("message", (message: "start" | "count" | "stop") => {
  if (message === "start")
    for (const index of hubs.keys()) for (let caller = 0; caller < callers; caller += 1) void call(index, caller);
  if (message === "count") process.send?.({ sent, errors } satisfies MemberCounts);
  if (message !== "stop") return;
  isStopping = true;
  void Promise.allSettled(hubs.map(hub => hub.destroy())).then(() => process.exit(0));
});
process.on("disconnect", () => process.exit(0));
process.send?.("ready");

async function call(index: number, caller: number): Promise<void> {
  for (let n = 0; !isStopping; n += 1) {
    try {
      const response = await hubs[index]?.fetch(`${origin}/${first + index}/${caller}/${n}`);
      await response?.arrayBuffer();
      if (response?.ok) sent[index] = (sent[index] ?? 0) + 1;
    } catch (error) {
      if (isStopping) return;
      if (errors.length < MAX_ERRORS) errors.push(String(error));
      return;
    }
  }
}
