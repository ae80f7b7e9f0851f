/**
 * One entry per client: how a program sends a request with it. `hub` is undefined when the hub is installed or
 * registered; else it has what the program passes to the client: `fetch`, `agents` and `dispatcher`.
 */

/** Throws for a status that is not 2xx, as most clients do themselves. */
function check(status) {
  if (status < 200 || status > 299) throw new Error(`status ${status}`);
}

async function sendByFetch(fetch, url, options) {
  const response = await fetch(url, options);
  await response.text();
  check(response.status);
}

async function sendByUndici(name, url, hub) {
  const { request } = await import(name);
  const { statusCode, body } = await request(url, hub && { dispatcher: hub.dispatcher });
  await body.text();
  check(statusCode);
}

const agentsOf = hub => hub && { httpAgent: hub.agents.http, httpsAgent: hub.agents.https };

export const clients = {
  "native fetch": (url, hub) => sendByFetch(hub?.fetch ?? fetch, url),
  "undici 5": (url, hub) => sendByUndici("undici5", url, hub),
  "undici 6": (url, hub) => sendByUndici("undici6", url, hub),
  "undici 7": (url, hub) => sendByUndici("undici7", url, hub),
  "undici 8": (url, hub) => sendByUndici("undici", url, hub),
  "undici 5 fetch": async (url, hub) =>
    sendByFetch((await import("undici5")).fetch, url, hub && { dispatcher: hub.dispatcher }),
  "undici 7 fetch": async (url, hub) =>
    sendByFetch((await import("undici7")).fetch, url, hub && { dispatcher: hub.dispatcher }),
  ky: async (url, hub) => {
    const { default: ky } = await import("ky");
    await ky.get(url, { retry: 0, ...(hub && { fetch: hub.fetch }) }).json();
  },
  ofetch: async (url, hub) => {
    const { createFetch, ofetch } = await import("ofetch");
    const send = hub ? createFetch({ fetch: hub.fetch, Headers, AbortController }) : ofetch;
    await send(url, { retry: 0 });
  },
  wretch: async (url, hub) => {
    const { default: wretch } = await import("wretch");
    const client = hub ? wretch(url).fetchPolyfill(hub.fetch) : wretch(url);
    await client.get().json();
  },
  "axios (http)": async (url, hub) => {
    const { default: axios } = await import("axios");
    await axios.get(url, { adapter: "http", ...agentsOf(hub) });
  },
  "axios (fetch)": async (url, hub) => {
    const { default: axios } = await import("axios");
    await axios.get(url, { adapter: "fetch", ...(hub && { env: { fetch: hub.fetch } }) });
  },
  got: async (url, hub) => {
    const { default: got } = await import("got");
    await got(url, { retry: { limit: 0 }, ...(hub && { agent: hub.agents }) }).json();
  },
  "node-fetch": async (url, hub) =>
    sendByFetch((await import("node-fetch")).default, url, hub && { agent: hub.agents.http }),
  superagent: async (url, hub) => {
    const { default: superagent } = await import("superagent");
    const request = superagent.get(url);
    await (hub ? request.agent(hub.agents.http) : request);
  },
  needle: async (url, hub) => {
    const { default: needle } = await import("needle");
    check((await needle("get", url, null, hub ? { agent: hub.agents.http } : {})).statusCode);
  },
  "cross-fetch": async (url, hub) =>
    sendByFetch((await import("cross-fetch")).default, url, hub && { agent: hub.agents.http }),
  "make-fetch-happen": async (url, hub) =>
    sendByFetch((await import("make-fetch-happen")).default, url, {
      retry: false,
      ...(hub && { agent: hub.agents.http }),
    }),
  octokit: async (url, hub) => {
    const { Octokit } = await import("octokit");
    const octokit = new Octokit({
      baseUrl: new URL(url).origin,
      throttle: { enabled: false },
      retry: { enabled: false },
    });
    await octokit.request("GET /zen", hub && { request: { fetch: hub.fetch } });
  },
  openai: async (url, hub) => {
    const { default: OpenAI } = await import("openai");
    const baseURL = new URL(url).origin;
    await new OpenAI({ baseURL, apiKey: "x", maxRetries: 0, ...(hub && { fetch: hub.fetch }) }).models.list();
  },
  anthropic: async (url, hub) => {
    const { default: Anthropic } = await import("@anthropic-ai/sdk");
    const baseURL = new URL(url).origin;
    await new Anthropic({ baseURL, apiKey: "x", maxRetries: 0, ...(hub && { fetch: hub.fetch }) }).models.list();
  },
  "AWS S3": async (url, hub) => {
    const { S3Client, ListBucketsCommand } = await import("@aws-sdk/client-s3");
    const client = new S3Client({
      endpoint: new URL(url).origin,
      region: "us-east-1",
      credentials: { accessKeyId: "x", secretAccessKey: "y" },
      maxAttempts: 1,
      ...(hub && { requestHandler: agentsOf(hub) }),
    });
    await client.send(new ListBucketsCommand({}));
  },
  "graphql-request": async (url, hub) => {
    const { GraphQLClient } = await import("graphql-request");
    await new GraphQLClient(url, hub ? { fetch: hub.fetch } : {}).request("{ ok }");
  },
  "isomorphic-git": async url => {
    const [{ default: git }, { default: http }] = await Promise.all([
      import("isomorphic-git"),
      import("isomorphic-git/http/node"),
    ]);
    await git.getRemoteInfo2({ http, url: `${new URL(url).origin}/repo.git`, protocolVersion: 1 });
  },
  "rdf-dereference": async (url, hub) => {
    const { default: module } = await import("rdf-dereference");
    const { rdfDereferencer = module } = module;
    const { data } = await rdfDereferencer.dereference(`${url}.ttl`, hub && { fetch: hub.fetch });
    await new Promise((resolve, reject) =>
      data
        .on("data", () => undefined)
        .on("end", resolve)
        .on("error", reject),
    );
  },
};
