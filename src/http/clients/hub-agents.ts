import type http from "node:http";
import type https from "node:https";
import { type NodeInterceptor, takeRequest } from "./node-hooks.ts";
import type { NodeRequestOptions } from "./node-target.ts";

/** Agents of node:http and node:https that send through a hub. Clients take them by these names, or one by one. */
export interface HubAgents {
  /** For `http:` URLs. */
  readonly http: http.Agent;
  /** For `https:` URLs. */
  readonly https: https.Agent;
}

/** Connections are kept alive unless the options say otherwise. */
export function createHubAgents(interceptor: NodeInterceptor, options: https.AgentOptions): HubAgents {
  const all = { keepAlive: true, ...options };
  // Not imported: few programs need them, and they take 40 ms to load.
  const [http, https] = [process.getBuiltinModule("node:http"), process.getBuiltinModule("node:https")];
  return {
    http: throughHub(new http.Agent(all), interceptor),
    https: throughHub(new https.Agent(all), interceptor),
  };
}

type AgentAddRequest = (this: http.Agent, request: http.ClientRequest, options: NodeRequestOptions) => void;

function throughHub<Agent extends http.Agent>(agent: Agent, interceptor: NodeInterceptor): Agent {
  const { addRequest } = agent as unknown as { readonly addRequest: AgentAddRequest };
  const gated: AgentAddRequest = (request, options) =>
    takeRequest(interceptor, request, options, () => addRequest.call(agent, request, options));
  return Object.assign(agent, { addRequest: gated });
}
