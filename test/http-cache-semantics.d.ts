/** The part of `http-cache-semantics` that tests compare with; the package has no types. */
declare module "http-cache-semantics" {
  interface Message {
    readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  }
  class CachePolicy {
    constructor(
      request: Message & { readonly method: string; readonly url: string },
      response: Message & { readonly status: number },
      options: { readonly shared: boolean },
    );
    /** Epoch milliseconds. Tests override it. */
    now(): number;
    storable(): boolean;
    /** Lifetime in seconds. */
    maxAge(): number;
  }
  export = CachePolicy;
}
