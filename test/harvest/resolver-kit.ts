/** Questions and answers of resolvers, without a network. */
import assert from "node:assert/strict";
import { identify } from "../../src/harvest/identifiers/identifiers.ts";
import type { Candidate, Finding, Resolver, ResolverAnswer } from "../../src/harvest/resolvers/resolver.ts";
import type { Work } from "../../src/harvest/work.ts";

export function workNamed(token: string): Work {
  const named = identify(token);
  assert.ok("work" in named, token);
  return named.work;
}

/** The address that a resolver asks about a work, or undefined. */
export function asked(resolver: Resolver, token: string): string | undefined {
  return resolver.ask(workNamed(token))?.url;
}

export interface Said extends Partial<Omit<ResolverAnswer, "body">> {
  /** Anything but a text is sent as JSON. */
  readonly body?: unknown;
}

/** What a resolver makes of an answer to its own question about a work. */
export function heard(resolver: Resolver, token: string, { body = "", ...said }: Said): Finding {
  const work = workNamed(token);
  const url = said.url ?? resolver.ask(work)?.url ?? "https://example.org/";
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return resolver.read({ status: 200, headers: {}, ...said, url, body: text }, work);
}

export function candidatesIn(finding: Finding): readonly Candidate[] {
  assert.equal(finding.kind, "found");
  return finding.kind === "found" ? finding.candidates : [];
}

/** In short, for what has no candidates: `none: no-copy`, `refused: …`, `ask: https://…`. */
export function told(finding: Finding): string {
  if (finding.kind === "none") return `none: ${finding.reason}`;
  if (finding.kind === "trouble") return `${finding.reason}: ${finding.message}`;
  return finding.kind === "ask" ? `ask: ${finding.question.url}` : "found";
}
