import { setStallTolerantTimer } from "../time/stall-tolerant-timer.ts";
import type { Time } from "../time/time.ts";

/** The reply of a server. If none comes within `timeoutMs`, rejects with the error that `onTimeout` returns. */
export async function replyWithin<Reply>(
  { time, timeoutMs }: { readonly time: Time; readonly timeoutMs: number },
  reply: Promise<Reply>,
  onTimeout: () => Error,
): Promise<Reply> {
  const timeout = Promise.withResolvers<never>();
  const timer = setStallTolerantTimer(time, timeoutMs, () => timeout.reject(onTimeout()));
  try {
    return await Promise.race([reply, timeout.promise]);
  } finally {
    timer.cancel();
  }
}
