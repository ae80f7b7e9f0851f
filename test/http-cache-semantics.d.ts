/** The little of `http-cache-semantics` that tests ask as an oracle; the package brings no types. */
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
    /** In epoch milliseconds, made to be overridden. */
    now(): number;
    storable(): boolean;
    /** The lifetime, in seconds. */
    maxAge(): number;
  }
  export = CachePolicy;
}
