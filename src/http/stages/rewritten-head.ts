import type { ResponseHead, ResponseSink } from "./stage.ts";

/** A sink that changes the head of the final response and passes on everything else. */
export function withRewrittenHead(sink: ResponseSink, rewrite: (head: ResponseHead) => ResponseHead): ResponseSink {
  return {
    interim: head => sink.interim(head),
    started: head => sink.started(rewrite(head)),
    data: chunk => sink.data(chunk),
    ended: (trailers, rawTrailers) => sink.ended(trailers, rawTrailers),
    failed: error => sink.failed(error),
    upgraded: (head, socket) => sink.upgraded(head, socket),
  };
}
