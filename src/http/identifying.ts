import type { Send } from "./exchange.ts";
import type { Identifier } from "./identify.ts";
import { rewritten } from "./rewritten.ts";

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
