import type { CallerIdentity } from "./caller-identity.ts";
import { withRewrittenHead } from "./rewritten-head.ts";
import type { SendRequest } from "./stage.ts";

/** Tells each host who calls. `current` is asked for each request, because a reload may have replaced it. */
export function identifyStage(current: () => CallerIdentity, next: SendRequest): SendRequest {
  return (request, sink) => {
    const callerIdentity = current();
    const identified = callerIdentity.apply(request);
    // Nothing of ours in the query means that no redirect can repeat it.
    if (identified.path === request.path) return next(identified, sink);
    return next(
      identified,
      withRewrittenHead(sink, head => callerIdentity.scrub(head, request)),
    );
  };
}
