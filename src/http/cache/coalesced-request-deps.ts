import type { RequestControl } from "../../core/cache/cache-control.ts";
import type { Time } from "../../time/time.ts";
import type { CallEnd } from "../request-telemetry.ts";
import type { OutgoingRequest, RequestHandle, ResponseHead, SendRequest } from "../stages/stage.ts";
import type { SubscribedCall } from "./subscriber.ts";

/** How a request that has left a coalesced one is sent. */
export type ResendMode =
  /** As a new request. */
  | "shared"
  /** As a new request that shares nothing with other requests. */
  | "unshared"
  /** Stored responses are not used. */
  | "unconditional"
  /** As a retry: the coalesced request was sent before, and now has to wait longer than this caller allows. */
  | "requeued";

/** What the cache does for a coalesced request. */
export interface CoalescedRequestDeps {
  readonly time: Time;
  readonly next: SendRequest;
  /** A longer body is not stored and not shared. */
  readonly maxBytes: number;
  readonly isStorable: (head: ResponseHead) => boolean;
  /** Whether the resource was written to after this request began. */
  readonly isOutdated: () => boolean;
  /** Whether a response that may be stored, received at this wall-clock time, may be served without revalidation. */
  readonly isReusable: (head: ResponseHead, receivedMs: number, control: RequestControl) => boolean;
  readonly store: (head: ResponseHead, body: readonly Buffer[]) => void;
  /** Sends the request of a subscriber on its own. */
  readonly requestAgain: (call: SubscribedCall, how: ResendMode) => RequestHandle;
  /** Called with whether followers can share the response. False may follow true, when the body becomes too long. */
  readonly onShareable: (isShareable: boolean, head: ResponseHead) => void;
  /** Called when no further request may join. */
  readonly onJoinClosed: () => void;
  /** Called when the leader has left. `leader` is the follower that leads now, if there is one. */
  readonly onLeaderLeft: (leader: OutgoingRequest | undefined) => void;
  readonly onOver: (end: CallEnd) => void;
}
