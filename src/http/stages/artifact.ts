import { withHeaders } from "../headers.ts";
import { withRewrittenHead } from "./rewritten-head.ts";
import type { ResponseHead, SendRequest } from "./stage.ts";

/**
 * Artifacts are delivered byte for byte: they are requested without compression. If the server compresses anyway, its
 * `content-encoding` is renamed to `x-content-encoding`, so that fetch does not decode the body.
 */
export function artifactStage(next: SendRequest): SendRequest {
  return (request, sink) => {
    if (request.role !== "artifact") return next(request, sink);
    const headers = withHeaders(request.headers, { "accept-encoding": "identity" });
    return next({ ...request, headers }, withRewrittenHead(sink, withEncodingMoved));
  };
}

function withEncodingMoved(head: ResponseHead): ResponseHead {
  const { "content-encoding": encoding, ...rest } = head.headers;
  if (encoding === undefined || encoding === "identity") return head;
  const headers = { ...rest, "x-content-encoding": encoding };
  return { ...head, headers, rawHeaders: headers };
}
