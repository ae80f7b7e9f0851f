import { Stream } from "node:stream";

/** A stream in the sense of undici: of Node, or of a library such as form-data or readable-stream. */
export interface BodyStream extends NodeJS.EventEmitter {
  readonly destroyed?: boolean;
  destroy?(): unknown;
}

export function isBodyStream(body: unknown): body is BodyStream {
  if (typeof body !== "object" || body === null) return false;
  return body instanceof Stream || ["pipe", "on"].every(name => typeof Reflect.get(body, name) === "function");
}
