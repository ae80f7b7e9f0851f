import type { Identifier } from "./caller-identity.ts";
import { rewritten } from "./rewritten-head.ts";
import type { Send } from "./stage.ts";

/** Tells each host who calls. `current` is asked for each request, because a reload may have replaced it. */
export function identifying(current: () => Identifier, next: Send): Send {
  return (request, sink) => {
    const identifier = current();
    const introduced = identifier.applied(request);
    // Nothing of ours in the query means that no redirect can repeat it.
    if (introduced.path === request.path) return next(introduced, sink);
    return next(
      introduced,
      rewritten(sink, head => identifier.scrubbed(head, request)),
    );
  };
}
