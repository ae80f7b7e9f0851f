import type { Dispatcher } from "undici";
import { isCredentialName } from "../core/text/credentials.ts";
import { ACCEPTED_CODINGS } from "../files/content-coding.ts";
import type { MinSpeed } from "../files/speed-check.ts";
import type { Hub } from "../http/hub.ts";
import { type AttemptFailure, isTransientStatus } from "./attempt-failure.ts";
import { challengeInFields } from "./challenge-page.ts";
import type { Cookies } from "./cookies.ts";
import { beginsAsPdf, kindOfType } from "./resolvers/page-links.ts";
import type { Finding, Resolver, ResolverRequest, ResolverResponse } from "./resolvers/resolver.ts";
import { discardBody, plainHeaders, readText, redirectTarget } from "./response-body.ts";
import { safeParse } from "./safe-parse.ts";
import type { ResolverStep } from "./step.ts";
import type { Work } from "./work.ts";

type HubResponse = Dispatcher.ResponseData<unknown>;

export type FindingResult = {
  readonly kind: "finding";
  readonly finding: Exclude<Finding, { readonly kind: "failure" }>;
  readonly status: number;
  readonly bytes: number;
};
export type FailedQuery = { readonly kind: "failed"; readonly bytes: number } & AttemptFailure;

/** The response leads to another URL. */
export interface Redirect {
  readonly kind: "redirect";
  readonly url: string;
  readonly status: number;
  /** Whether the response has set a cookie: then the same URL may give another response. */
  readonly setsCookies: boolean;
}

export type ResolverQueryResult =
  | FindingResult
  | Redirect
  /** The page is a file itself. Its body has not been read. */
  | { readonly kind: "file"; readonly fileKind: "pdf" | "xml"; readonly response: HubResponse }
  | FailedQuery;

export interface ResolverQueryOptions {
  readonly hub: Pick<Hub, "request">;
  /** How long a request may wait at the gate. If it would wait longer, the hub refuses it and it is queued again. */
  readonly maxWaitMs: number;
  /** For pages; services are asked without cookies. */
  readonly cookies: Cookies;
  /** A slower body is interrupted. */
  readonly minSpeed: MinSpeed;
}

/** Responses of services have some kilobytes; a list of a thousand locations has a megabyte. */
const RESPONSE_BYTES_MAX = 4 * 2 ** 20;
const DEADLINE_MS = 90_000;

/** Sends one request of a resolver and parses the response. Rejects with a refusal of the hub or a network error. */
export async function queryResolver(
  options: ResolverQueryOptions,
  step: ResolverStep,
  signal: AbortSignal,
): Promise<ResolverQueryResult> {
  const { resolver, request, url, about } = step;
  const isPage = request.role === "landing";
  const cookies = isPage ? options.cookies.fieldsFor(url) : {};
  const response = await send(options, resolver, request, url, signal, cookies);
  const { statusCode: status } = response;
  const setsCookies = isPage && options.cookies.keep(url, response.headers);
  const headers = plainHeaders(response.headers);
  const target = redirectTarget(status, headers["location"], url);
  if (target !== undefined) {
    await discardBody(response, options.minSpeed);
    if ("problem" in target) return failed("redirects", target.problem, status, 0, false);
    return { kind: "redirect", url: target.url, status, setsCookies };
  }
  const fileKind = isPage && status === 200 ? kindOfType(headers["content-type"]) : undefined;
  if (fileKind !== undefined && challengeInFields(headers) === undefined) return { kind: "file", fileKind, response };
  const { text, bytes, isComplete } = await readText(
    response,
    request.maxBytes ?? RESPONSE_BYTES_MAX,
    options.minSpeed,
    // The page is a file whose type is missing or wrong. It is requested again as a file.
    isPage ? beginning => beginsAsPdf(beginning.toString("utf8")) : undefined,
  );
  // A page may be cut: its metadata is at its beginning.
  if (!isComplete && !isPage) return tooLarge(request, status, bytes);
  const parsed = { url, status, headers, body: text };
  return resultOf(
    safeParse(() => resolver.parse(parsed, about)),
    parsed,
    bytes,
  );
}

/** Sends one request about several works. One result for each, in their order; a failure is the same for all. */
export async function queryBatch(
  options: ResolverQueryOptions,
  resolver: Resolver & { readonly batch: NonNullable<Resolver["batch"]> },
  works: readonly Work[],
  signal: AbortSignal,
): Promise<readonly (FindingResult | FailedQuery)[]> {
  const request = resolver.batch.requestFor(works);
  const response = await send(options, resolver, request, request.url, signal);
  const { statusCode: status } = response;
  const headers = plainHeaders(response.headers);
  const { text, bytes, isComplete } = await readText(
    response,
    request.maxBytes ?? RESPONSE_BYTES_MAX,
    options.minSpeed,
  );
  if (!isComplete) return works.map(() => tooLarge(request, status, bytes));
  const parsed = { url: request.url, status, headers, body: text };
  const findings = safeParse(() => resolver.batch.parse(parsed, works));
  // The bytes of the response are counted for the first work only.
  return works.map((_, index) => {
    const finding = Array.isArray(findings) ? findings[index] : findings;
    const bytesOfWork = index === 0 ? bytes : 0;
    return resultOf(finding ?? { kind: "none", reason: "unknown-work" }, parsed, bytesOfWork);
  });
}

function send(
  { hub, maxWaitMs }: ResolverQueryOptions,
  { name }: Resolver,
  request: ResolverRequest,
  url: string,
  signal: AbortSignal,
  cookies: Readonly<Record<string, string>> = {},
): Promise<HubResponse> {
  const { role, body, weight } = request;
  const call = { role, resolver: name, weight, maxWaitMs, deadlineMs: DEADLINE_MS, signal };
  const fields = { "accept-encoding": ACCEPTED_CODINGS, ...cookies, ...fieldsFor(request, url) };
  if (body === undefined) return hub.request(url, { ...call, headers: fields });
  return hub.request(url, {
    ...call,
    method: "POST",
    body,
    headers: { "content-type": "application/json", ...fields },
  });
}

/** The header fields of the resolver. After a redirect to another origin its credentials are left out. */
function fieldsFor({ url: firstUrl, headers = {} }: ResolverRequest, url: string): Readonly<Record<string, string>> {
  if (url === firstUrl || URL.parse(url)?.origin === URL.parse(firstUrl)?.origin) return headers;
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !isCredentialName(name)));
}

function resultOf(finding: Finding, { status, headers }: ResolverResponse, bytes: number): FindingResult | FailedQuery {
  if (finding.kind !== "failure") return { kind: "finding", finding, status, bytes };
  const { reason, message, isForAllWorks } = finding;
  if (reason === "unavailable") return failed("http-status", message, status, bytes, true);
  // Hosts block clients that repeat a challenged request.
  if (reason === "challenge-page") return failed(reason, message, status, bytes, false);
  return { ...failed(reason, message, status, bytes, isTransientStatus(status, headers)), isForAllWorks };
}

function tooLarge({ maxBytes = RESPONSE_BYTES_MAX }: ResolverRequest, status: number, bytes: number): FailedQuery {
  return failed("too-large", `response larger than ${maxBytes} bytes`, status, bytes, false);
}

function failed(
  reason: AttemptFailure["reason"],
  message: string,
  status: number,
  bytes: number,
  mayRetry: boolean,
): FailedQuery {
  return { kind: "failed", reason, message, status, bytes, mayRetry };
}
