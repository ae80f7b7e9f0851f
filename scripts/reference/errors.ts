import { readFileSync } from "node:fs";
import {
  BodyUnreadError,
  BreakerOpenError,
  BusyError,
  ConfigError,
  DeadlineExceededError,
  type DocstokgError,
  type DocstokgErrorCode,
  DownloadError,
  HubClosedError,
  PrivateAddressError,
  RateLimitExceeded,
  RedirectError,
  RejectedError,
  StoreError,
} from "../../src/errors.ts";
import { parseRatelimits } from "../../src/policy/ratelimit-schema.ts";
import { code, page, table } from "./markdown.ts";

interface ErrorAdvice {
  /** Errors made by the real constructors, so that the messages shown are those of the code. */
  readonly examples: readonly DocstokgError[];
  readonly advice: readonly string[];
}

const call = { host: "api.example.org", role: "metadata" } as const;
const rate = { kind: "window", owner: "api.example.org", limit: "10/SECOND" } as const;
const circuit = { kind: "breaker", owner: "api.example.org", limit: "fail_max 5" } as const;

function problemOf(parse: () => unknown): DocstokgError {
  try {
    parse();
  } catch (error) {
    if (error instanceof ConfigError) return error;
  }
  throw new Error("the example of a ConfigError is valid");
}

/** The type asks for an entry for each code. */
const ERRORS: Readonly<Record<DocstokgErrorCode, ErrorAdvice>> = {
  DOCSTOKG_RATE_LIMITED: {
    examples: [
      new RateLimitExceeded({
        ...call,
        constraint: rate,
        retryAfterMs: 340,
        maxWaitMs: 200,
        maxWaitOption: "max_delay_ms",
      }),
      new RateLimitExceeded({
        ...call,
        constraint: { ...rate, kind: "store" },
        retryAfterMs: 0,
        maxWaitMs: 0,
        maxWaitOption: "when_store_away",
      }),
    ],
    advice: [
      "Wait longer: pass `maxWaitMs` (or `deadlineMs`) to the call, or raise `max_delay_ms` of the host.",
      "Do something else, and repeat the call after `error.retryAfterMs` milliseconds. Nothing was sent and nothing was charged.",
      "Find the limit: `error.decidedBy` has the setting and its source; `docstokg why <url>` prints the same for a running program.",
      "If `constraint.kind` is `store`, the shared store does not answer: see [stores](../guides/stores.md#when-the-store-is-unavailable).",
    ],
  },
  DOCSTOKG_BREAKER_OPEN: {
    examples: [
      new BreakerOpenError({
        ...call,
        constraint: circuit,
        reason: "failures",
        cooldownRemainingMs: 45_000,
        failMax: 5,
        lastFailure: "HTTP 503",
      }),
      new BreakerOpenError({ ...call, constraint: circuit, reason: "retry-after", cooldownRemainingMs: 30_000 }),
      new BreakerOpenError({
        ...call,
        constraint: circuit,
        reason: "cli-open:maintenance",
        cooldownRemainingMs: 300_000,
      }),
    ],
    advice: [
      "Usually wait: after `error.retryAfterMs` milliseconds a trial call decides. Fresh responses in the cache are served meanwhile.",
      "Let the call wait for the circuit: pass `maxBreakerWaitMs`, or `deadlineMs`.",
      "See all open circuits with `docstokg breaker show`; close one with `docstokg breaker close <host>` if you know that the host works again.",
    ],
  },
  DOCSTOKG_BUSY: {
    examples: [
      new BusyError({
        ...call,
        constraint: { kind: "concurrency", owner: "api.example.org", limit: "max_concurrent 3" },
        maxWaitMs: 2000,
      }),
    ],
    advice: [
      "Read every response body to its end, or cancel it: an unread body holds its slot.",
      "Raise `max_concurrent` of the host, or `max_inflight` of the process, if the service allows more.",
      "Pass a larger `maxWaitMs`. Without one, a call waits for a slot without a bound.",
    ],
  },
  DOCSTOKG_CONFIG: {
    examples: [
      problemOf(() =>
        parseRatelimits({ hosts: { "api.example.org": { metadata: { rates: "10/SECNOD" } } } }, "limits.yaml:12"),
      ),
    ],
    advice: [
      "Correct each line of the message: it names the file, the key, the value and what would be valid. `error.problems` has the same as values.",
      "Check a file before you use it: `docstokg policy check my-limits.yaml`.",
    ],
  },
  DOCSTOKG_STORE: {
    examples: [
      new StoreError("redis at 127.0.0.1:6379: connect ECONNREFUSED 127.0.0.1:6379"),
      new StoreError("the store /srv/shared.db was locked by another process for 500 ms"),
    ],
    advice: [
      "If `error.isPermanent` is true, change the configuration: the password, the name of the database or the path is wrong, or the file belongs to another program.",
      "Otherwise the store is away for a while. A running hub continues as `when_store_away` says; `docstokg doctor` tests the connection.",
    ],
  },
  DOCSTOKG_DOWNLOAD: {
    examples: [
      new DownloadError("the zip file is damaged: CRC-32 mismatch"),
      new DownloadError("cannot write papers/.parts/1f: ENOSPC"),
    ],
    advice: [
      "Free space on the disk, or correct the permissions of the folder, if the message names a path.",
      "Otherwise repeat the download: the file of the service was incomplete or damaged. Finished files are kept.",
    ],
  },
  DOCSTOKG_PRIVATE_ADDRESS: {
    examples: [new PrivateAddressError({ host: "wiki.example.org", address: "10.0.0.7" })],
    advice: [
      "Nothing, if the address came from outside: a redirect into your network was stopped.",
      "Allow it with `network: { allowPrivate: true }` (`--allow-private`) if the service is your own.",
    ],
  },
  DOCSTOKG_DEADLINE: {
    examples: [new DeadlineExceededError({ ...call, deadlineMs: 30_000, attempts: 2, waitedMs: 12_400 })],
    advice: [
      "Look at the message: much time in the queue means a limit, several attempts mean failures of the host.",
      "Pass a larger `deadlineMs`. It covers waits, attempts and the response body.",
    ],
  },
  DOCSTOKG_BODY_UNREAD: {
    examples: [new BodyUnreadError({ ...call, unreadMs: 30_000 })],
    advice: [
      "Read every body to its end, or call `body.cancel()` (fetch) or `body.dump()` (request).",
      "Raise `unreadBodyMs` of the hub if the program needs long pauses while it reads.",
    ],
  },
  DOCSTOKG_REDIRECT: {
    examples: [new RedirectError("redirect loop: the URL at api.example.org was already visited")],
    advice: ['Open the URL in a browser to see where it leads. Pass `redirect: "manual"` to get the first answer.'],
  },
  DOCSTOKG_CLOSED: {
    examples: [new HubClosedError()],
    advice: ["Close the hub or the limiter after the last call has ended, or make a new one."],
  },
};

/** `docs/reference/errors.md`: each code, its meaning, what to do, and its message. */
export function errorsPage(): string {
  const read = (file: string) => readFileSync(new URL(`../../src/${file}`, import.meta.url), "utf8");
  const source = `${read("errors.ts")}${read("errors/rejected-error.ts")}`;
  const codes = Object.keys(ERRORS) as DocstokgErrorCode[];
  return page(
    "Errors",
    "Every error that the package raises on purpose is a `DocstokgError`. `code` is stable across versions and survives bundling; use it, or `isDocstokgError(error)`, where `instanceof` cannot work. An abort by the caller is not among them: the reason of its signal is thrown. An invalid argument is a `TypeError` or `RangeError` that names the option and its value.",
    table(
      ["code", "class", "meaning"],
      codes.map(name => {
        const { example, meaning } = described(name, source);
        return [`[\`${name}\`](#${name.toLowerCase()})`, code(example.name), meaning];
      }),
    ),
    'A global `fetch` that reaches a hub by `install()` rejects with a `TypeError`, whose `cause` is the error. With `refusals: "respond"` a refusal becomes a response instead: 429 for a rate limit, 503 for an open circuit or a missing slot.',
    "Works that `docstokg run` could not download have a reason instead of an error: [the guide](../guides/run.md#reasons) lists them.",
    ...codes.map(name => section(name, source)),
  );
}

function described(name: DocstokgErrorCode, source: string) {
  const [example] = ERRORS[name].examples;
  if (example === undefined || ERRORS[name].examples.some(other => other.code !== name))
    throw new Error(`the examples of ${name} are errors of another code`);
  const meaning = new RegExp(`/\\*\\* ([^*]*) \\*/\\nexport class ${example.name} `).exec(source)?.[1];
  if (meaning === undefined) throw new Error(`class ${example.name} has no comment of one line`);
  return { example, meaning };
}

function section(name: DocstokgErrorCode, source: string): string {
  const { example, meaning } = described(name, source);
  const { examples, advice } = ERRORS[name];
  const retryable = example instanceof RejectedError ? " The request was not sent; `retryable` is false." : "";
  const messages = examples.map(({ message }) => `${example.name}: ${message}`).join("\n");
  return [
    `## ${name}`,
    `${code(example.name)}: ${meaning}${retryable}`,
    `\`\`\`console\n${messages}\n\`\`\``,
    "What to do:",
    advice.map(line => `- ${line}`).join("\n"),
  ].join("\n\n");
}
