import { DeadlineExceededError } from "../errors.ts";
import type { OutgoingRequest } from "./stages/stage.ts";

type DeadlineRequest = Pick<OutgoingRequest, "host" | "role" | "call" | "record" | "deadlineUs">;

/** The error of a call whose own deadline has passed; undefined before that, and for a call without `deadlineMs`. */
export function deadlineError(request: DeadlineRequest, nowUs: number): DeadlineExceededError | undefined {
  const { host, role, record, deadlineUs } = request;
  const { deadlineMs } = request.call;
  if (deadlineMs === undefined || nowUs < deadlineUs) return undefined;
  const { attempts, queuedSinceUs } = record;
  const waitedMs = record.waitedMs + (nowUs - (queuedSinceUs ?? nowUs)) / 1000;
  return new DeadlineExceededError({ host, role, deadlineMs, attempts, waitedMs });
}
