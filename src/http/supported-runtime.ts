/**
 * Throws on a runtime that the hub does not support. Every entry with a hub imports this module first, and it imports
 * nothing itself. On another runtime the hub would fail with a stack trace, or limit nothing: Deno ignores the dispatcher
 * of a fetch.
 */

/** The oldest supported version of Node, as in `engines` of package.json. */
const OLDEST_NODE = [22, 19] as const;

/** Why the hub cannot work here; undefined when it can. */
export function runtimeProblem(versions: Readonly<Record<string, string | undefined>>): string | undefined {
  const { bun, deno, node = "0.0" } = versions;
  const [name, version] = bun !== undefined ? ["Bun", bun] : deno !== undefined ? ["Deno", deno] : [];
  if (name !== undefined) {
    return `docstokg needs Node: under ${name} ${version} requests would not be limited; docstokg/limiter and docstokg/breaker work there`;
  }
  const [major = 0, minor = 0] = node.split(".").map(Number);
  const isOld = major < OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor < OLDEST_NODE[1]);
  return isOld ? `docstokg needs Node ${OLDEST_NODE.join(".")} or newer; this is Node ${node}` : undefined;
}

const problem = runtimeProblem(process.versions);
if (problem !== undefined) throw new Error(problem);
