/** Requests and findings of resolvers, without a network. */
import assert from "node:assert/strict";
import { identify } from "../../src/harvest/identifiers/identifiers.ts";
import type { Candidate, Finding, Resolver, ResolverResponse } from "../../src/harvest/resolvers/resolver.ts";
import type { Work } from "../../src/harvest/work.ts";

export function workNamed(token: string): Work {
  const named = identify(token);
  assert.ok("work" in named, token);
  return named.work;
}

/** The URL of the request of a resolver for a work, or undefined. */
export function requestUrl(resolver: Resolver, token: string): string | undefined {
  return resolver.requestFor(workNamed(token))?.url;
}

export interface TestResponse extends Partial<Omit<ResolverResponse, "body">> {
  /** A value that is not a string is sent as JSON. */
  readonly body?: unknown;
}

/** The finding of a resolver for a response to its own request. */
export function findingFor(resolver: Resolver, token: string, { body = "", ...response }: TestResponse): Finding {
  const work = workNamed(token);
  const url = response.url ?? resolver.requestFor(work)?.url ?? "https://example.org/";
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return resolver.parse({ status: 200, headers: {}, ...response, url, body: text }, work);
}

export function candidatesIn(finding: Finding): readonly Candidate[] {
  assert.equal(finding.kind, "found");
  return finding.kind === "found" ? finding.candidates : [];
}

/** A finding without candidates in short: `none: no-copy`, `refused: …`, `follow-up: https://…`. */
export function summaryOf(finding: Finding): string {
  if (finding.kind === "none") return `none: ${finding.reason}`;
  if (finding.kind === "failure") return `${finding.reason}: ${finding.message}`;
  return finding.kind === "follow-up" ? `follow-up: ${finding.request.url}` : "found";
}
