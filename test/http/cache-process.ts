/**
 * One of several processes on one cache, for `cache-processes.test.ts`.
 *
 *   share <file> <me> <processes> <entries>   stores its own entries, and exits when it has found those of all processes
 *   hammer <file>                             stores until it is killed
 */
import { SqliteCache } from "../../src/http/cache/sqlite-cache.ts";
import { systemTime } from "../../src/time/system-time.ts";

const [, , task = "", file = "", me = "0", processes = "1", entries = "0"] = process.argv;

/** All processes start at the same moment, after everything is loaded. */
await new Promise<void>(resolve => {
  process.once("message", () => resolve());
  process.send?.("ready");
});
const troubles: string[] = [];
const cache = await SqliteCache.open(file, { time: systemTime, onTrouble: ({ message }) => troubles.push(message) });

function put(owner: string, entry: number): void {
  const body = Buffer.from(`${owner} ${entry} `.repeat(200));
  const times = { requestedMs: systemTime.wallMs(), receivedMs: systemTime.wallMs() };
  const head = { status: 200, statusText: "OK", headers: { "x-entry": `${owner} ${entry}` }, ...times };
  cache.put(urlOf(owner, entry), { ...head, varyNames: [], varyKey: "" }, [body]);
}

function urlOf(owner: string, entry: number): string {
  return `https://example.org/${owner}/${entry}`;
}

/** A found response has its complete body. */
function isFound(owner: string, entry: number): boolean {
  const [found] = cache.find(urlOf(owner, entry));
  const body = found?.body()?.toString();
  if (body === undefined) return false;
  if (body !== `${owner} ${entry} `.repeat(200)) throw new Error(`${owner} ${entry} has the body of another`);
  return true;
}

if (task === "share") {
  let longestUs = 0;
  for (let entry = 0; entry < Number(entries); entry += 1) {
    const startUs = systemTime.monotonicUs();
    put(me, entry);
    if (!isFound(me, entry)) throw new Error(`${me} does not find its own ${entry}`);
    longestUs = Math.max(longestUs, systemTime.monotonicUs() - startUs);
    if (entry % 4 === 0) await systemTime.sleep(0);
  }
  await cache.settled();
  const missing = new Set<string>();
  for (let owner = 0; owner < Number(processes); owner += 1) {
    for (let entry = 0; entry < Number(entries); entry += 1) missing.add(`${owner} ${entry}`);
  }
  while (missing.size > 0) {
    for (const one of missing) {
      const [owner = "", entry = ""] = one.split(" ");
      if (isFound(owner, Number(entry))) missing.delete(one);
    }
    await systemTime.sleep(10);
  }
  const { dropped } = cache.stats;
  cache.close();
  process.send?.({ troubles, dropped, longestUs });
  process.disconnect();
} else {
  for (let entry = 0; ; entry += 1) {
    put("hammer", entry);
    if (entry === 200) process.send?.("written");
    if (entry % 50 === 0) await systemTime.sleep(0);
  }
}
