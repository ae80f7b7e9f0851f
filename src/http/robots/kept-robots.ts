/** The response to a request for robots.txt, after redirects. */
export interface RobotsFile {
  readonly status: number;
  /** The beginning of the file; empty unless the status is 2xx. */
  readonly text: string;
}

export interface KeptRobotsFile extends RobotsFile {
  /** Time since it was requested. Not below 0. */
  readonly ageMs: number;
}

/** The robots.txt of each origin, so that other processes and later runs need not request it again. */
export interface KeptRobots {
  /** Undefined if there is none, or if that is not known at once: then robots.txt is requested again. */
  find(origin: string): Promise<KeptRobotsFile | undefined>;
  /** Replaces the robots.txt of the origin. */
  save(origin: string, file: RobotsFile): Promise<void>;
}

/** RFC 9309, 2.4: a crawler should not use a robots.txt for longer. */
export const ROBOTS_KEPT_MS = 24 * 3_600_000;

/** What is kept of a response. Undefined if the server has failed (429, 5xx): the next request may succeed. */
export function robotsToKeep(status: number, text: string): RobotsFile | undefined {
  if (status >= 500 || status === 429) return undefined;
  return { status, text: status >= 200 && status < 300 ? text : "" };
}
