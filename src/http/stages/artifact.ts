import { withHeaders } from "../headers.ts";
import { withRewrittenHead } from "./rewritten-head.ts";
import type { ResponseHead, SendRequest } from "./stage.ts";

/**
 * Artifacts are wanted byte for byte: they are asked for as they are, and where a server compresses them all the same,
 * its `content-encoding` is moved to `x-content-encoding`, so that nothing further out decodes them unasked.
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
