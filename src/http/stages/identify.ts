import type { CallerIdentity } from "./caller-identity.ts";
import { withRewrittenHead } from "./rewritten-head.ts";
import type { SendRequest } from "./stage.ts";

/** Adds the identification of the caller that each host wants. A reload may replace `current()` at any time. */
export function identifyStage(current: () => CallerIdentity, next: SendRequest): SendRequest {
  return (request, sink) => {
    const callerIdentity = current();
    const identified = callerIdentity.apply(request);
    // Nothing was added to the query, so no Location header can repeat it.
    if (identified.path === request.path) return next(identified, sink);
    return next(
      identified,
      withRewrittenHead(sink, head => callerIdentity.scrub(head, request)),
    );
  };
}
