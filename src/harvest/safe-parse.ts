import type { Finding } from "./resolvers/resolver.ts";

/** Resolvers parse untrusted text: an unexpected error is a failure of the response and must not end the run. */
export function safeParse<Result>(parse: () => Result): Result | Extract<Finding, { readonly kind: "failure" }> {
  try {
    return parse();
  } catch (error) {
    return { kind: "failure", reason: "unreadable", message: error instanceof Error ? error.name : String(error) };
  }
}
