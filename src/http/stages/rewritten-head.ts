import type { ResponseHead, Sink } from "./stage.ts";

/** A sink that sees another head, and everything else as it comes. */
export function rewritten(sink: Sink, rewrite: (head: ResponseHead) => ResponseHead): Sink {
  return {
    informed: head => sink.informed(head),
    started: head => sink.started(rewrite(head)),
    data: chunk => sink.data(chunk),
    ended: (trailers, rawTrailers) => sink.ended(trailers, rawTrailers),
    failed: error => sink.failed(error),
    upgraded: (head, socket) => sink.upgraded(head, socket),
  };
}
