/** `docstokg/dashboard`: a live page about a hub, as a handler for Node servers. */
export { createDashboard, type Dashboard, type DashboardOptions } from "./dashboard/dashboard.ts";
export type { ActionName } from "./dashboard/dashboard-state.ts";
export type { PerformedAction } from "./dashboard/performed-action.ts";
export type { Hub } from "./http/hub.ts";
export type { Time, Timer } from "./time/time.ts";
