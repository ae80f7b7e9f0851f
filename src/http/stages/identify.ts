import type { CallerIdentity } from "./caller-identity.ts";
import { withRewrittenHead } from "./rewritten-head.ts";
import type {
  OutgoingRequest,
  RequestHandle,
  ResponseHead,
  ResponseSink,
  SendIdentified,
  SendRequest,
  SentFields,
} from "./stage.ts";

/** Adds the identification of the caller that each host wants. `current` is read for each request: a reload replaces it. */
export function identifyStage(current: () => CallerIdentity, next: SendIdentified): SendRequest {
  return (request, sink) => {
    const callerIdentity = current();
    const sent = callerIdentity.apply(request);
    request.record.identity = callerIdentity;
    if (!callerIdentity.addsIdentity(request)) return next(request, sink, sent);
    return scrubRedirect(callerIdentity, request, sink, sent, next);
  };
}

/** Passes on a redirect without the identification that its Location repeats, or fails the request. */
function scrubRedirect(
  callerIdentity: CallerIdentity,
  request: OutgoingRequest,
  sink: ResponseSink,
  sent: SentFields,
  next: SendIdentified,
): RequestHandle {
  const scrubbed: ResponseSink = {
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
  };
  const handle = next(request, scrubbed, sent);
  return handle;
}
