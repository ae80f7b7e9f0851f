/** opossum ships no types. These are the ones that are used here. */
declare module "opossum" {
  import type { EventEmitter } from "node:events";

  interface Options {
    readonly timeout?: number | false;
    readonly resetTimeout?: number;
    readonly volumeThreshold?: number;
    readonly rollingPercentilesEnabled?: boolean;
    readonly enableSnapshots?: boolean;
    readonly rotateBucketController?: EventEmitter;
  }

  class CircuitBreaker<Args extends readonly unknown[], Result> {
    constructor(action: (...args: Args) => Promise<Result>, options?: Options);
    fire(...args: Args): Promise<Result>;
    readonly opened: boolean;
  }

  export = CircuitBreaker;
}
