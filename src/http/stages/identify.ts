import type { CallerIdentity } from "./caller-identity.ts";
import { withRewrittenHead } from "./rewritten-head.ts";
import type { OutgoingRequest, RequestHandle, ResponseHead, ResponseSink, SendRequest } from "./stage.ts";

/** Adds the identification of the caller that each host wants. A reload may replace `current()` at any time. */
export function identifyStage(current: () => CallerIdentity, next: SendRequest): SendRequest {
  return (request, sink) => {
    const callerIdentity = current();
    const identified = callerIdentity.apply(request);
    if (!callerIdentity.mayBeRepeated(request)) return next(identified, sink);
    return scrubRedirect(callerIdentity, request, sink, scrubbed => next(identified, scrubbed));
  };
}

/** Passes on a redirect without the identification that its Location repeats, or fails the request. */
function scrubRedirect(
  callerIdentity: CallerIdentity,
  request: OutgoingRequest,
  sink: ResponseSink,
  send: (sink: ResponseSink) => RequestHandle,
): RequestHandle {
  const handle = send({
    ...withRewrittenHead(sink, head => head),
    started: head => {
      let clean: ResponseHead;
      try {
        clean = callerIdentity.scrub(head, request);
      } catch (error) {
        handle.abort(error);
        sink.failed(error);
        return;
      }
      sink.started(clean);
    },
  });
  return handle;
}
