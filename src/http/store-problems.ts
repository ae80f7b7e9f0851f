import { withoutCredentials } from "../core/text/passwords.ts";
import type { ConfigProblem } from "../errors.ts";
import type { Assignment } from "../policy/layer.ts";
import type { LoadedPolicy } from "../policy/load.ts";
import { SourceIndex } from "../policy/source-index.ts";
import type { StoreNames } from "../stores/open-store.ts";

/**
 * One problem for each store that a reload would change. A hub does not change its store: leases, cooldowns and peers
 * of the old store would be lost, so the shared limits would be exceeded.
 */
export function storeProblems(
  before: StoreNames,
  after: StoreNames,
  { ratelimits, breakers }: LoadedPolicy,
): readonly ConfigProblem[] {
  return [
    ...problemsOf(["backend"], ratelimits.assignments, before.limits, after.limits),
    ...problemsOf(
      ["advanced", "cooldown_store"],
      breakers.assignments,
      before.breakers ?? "none",
      after.breakers ?? "none",
    ),
  ];
}

function problemsOf(
  path: readonly string[],
  assignments: readonly Assignment[],
  before: string,
  after: string,
): readonly ConfigProblem[] {
  if (before === after) return [];
  const [old, now] = [withoutCredentials(before), withoutCredentials(after)];
  const change = old === now ? `the credentials of ${now} changed` : `changed from ${old} to ${now}`;
  const message = `${change}, but a running hub cannot change its store; restore the old value, or restart the program`;
  return [{ where: new SourceIndex(assignments).whereOf(path) ?? "hub.reload", path: path.join("."), message }];
}
