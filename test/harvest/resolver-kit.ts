/** Questions and answers of resolvers, without a network. */
import assert from "node:assert/strict";
import { identify } from "../../src/harvest/identifiers/identifiers.ts";
import type { Candidate, Finding, Resolver, ResolverResponse } from "../../src/harvest/resolvers/resolver.ts";
import type { Work } from "../../src/harvest/work.ts";

export function workNamed(token: string): Work {
  const named = identify(token);
  assert.ok("work" in named, token);
  return named.work;
}

/** The address that a resolver asks about a work, or undefined. */
export function requestUrl(resolver: Resolver, token: string): string | undefined {
  return resolver.requestFor(workNamed(token))?.url;
}

export interface TestResponse extends Partial<Omit<ResolverResponse, "body">> {
  /** Anything but a text is sent as JSON. */
  readonly body?: unknown;
}

/** What a resolver makes of an answer to its own question about a work. */
export function findingFor(resolver: Resolver, token: string, { body = "", ...response }: TestResponse): Finding {
  const work = workNamed(token);
  const url = response.url ?? resolver.requestFor(work)?.url ?? "https://example.org/";
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return resolver.read({ status: 200, headers: {}, ...response, url, body: text }, work);
}

export function candidatesIn(finding: Finding): readonly Candidate[] {
  assert.equal(finding.kind, "found");
  return finding.kind === "found" ? finding.candidates : [];
}

/** In short, for what has no candidates: `none: no-copy`, `refused: …`, `ask: https://…`. */
export function summaryOf(finding: Finding): string {
  if (finding.kind === "none") return `none: ${finding.reason}`;
  if (finding.kind === "failure") return `${finding.reason}: ${finding.message}`;
  return finding.kind === "ask" ? `ask: ${finding.request.url}` : "found";
}
