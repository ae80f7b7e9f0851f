/**
 * Which entries of the policy a request belongs to. This file is the only copy of that rule: limits, breakers,
 * `policy explain`, `policy show`, `why`, `hub.policyFor` and the checks all read it.
 *
 * 1. Hosts: the most specific pattern that contains the request wins: host with port, then host, then the longest
 *    suffix (`*.example.org`); of one host, the longest path.
 * 2. A host that the policy names with a port also belongs to the entries of the host without it.
 */
import { canonicalHost } from "../core/text/host.ts";
import { type Member, memberText } from "./member.ts";
import { normalizedPath, pathsAbove } from "./url-path.ts";

/** The entries of the policy that a request belongs to. */
export interface RoutedRequest {
  /** The canonical host; without a port that the policy does not name, if it names the host. */
  readonly host: string;
  /**
   * The hosts whose entries may apply, weakest first: the host, then the host with its port. A path or a port
   * that is a member of a service by itself does not belong to the entry of its host.
   */
  readonly names: readonly string[];
  /** The `names` that are listed under `hosts`. */
  readonly listed: readonly string[];
  readonly service: string | undefined;
  /** The path of the member that contains the request; empty for the whole host. */
  readonly memberPath: string;
  /** The same path as the policy writes it. */
  readonly writtenPath: string;
}

/** Members by normalized path. The empty path is the whole host. */
type MembersByPath = ReadonlyMap<string, OwnedMember>;

interface OwnedMember extends Pick<Member, "path" | "writtenPath"> {
  readonly service: string;
}

/** The member that contains a request, and the table of its host. */
interface Match {
  readonly member: OwnedMember;
  readonly table: MembersByPath;
}

interface KnownHost {
  /** The canonical host, with its port. */
  readonly name: string;
  /** The tables that may contain it, most specific first. */
  readonly tables: readonly MembersByPath[];
  /** The length of the longest path that is a member; 0 if its paths belong to one service. */
  readonly longestPath: number;
  /** Its requests, by the path of the member that contains them. */
  readonly parts: Map<string, RoutedRequest>;
}

const NO_MEMBER = { service: undefined, path: "", writtenPath: "" };

/** Bounds the memory for a crawler that calls very many hosts. The same number as `UNLISTED_MAX` of the breakers. */
const REMEMBERED_MAX = 16_384;

/** The table of hosts, suffixes and paths that a policy names. */
export class Routing {
  readonly #listed: ReadonlySet<string>;
  readonly #hosts = new Map<string, Map<string, OwnedMember>>();
  readonly #suffixes = new Map<string, Map<string, OwnedMember>>();
  /** By the text of the host, which may not be canonical. */
  readonly #known = new Map<string, KnownHost>();

  /** @param listed the canonical hosts under `hosts` */
  constructor(listed: Iterable<string>, services: Iterable<readonly [service: string, members: readonly Member[]]>) {
    this.#listed = new Set(listed);
    for (const [service, members] of services) for (const member of members) this.#add(member, service);
  }

  /**
   * Throws a RangeError when the text is not a host. Without a path: the request belongs to the whole host. Requests with
   * the same entries usually get the same object.
   */
  find(text: string, path = ""): RoutedRequest {
    const { name, tables, longestPath, parts } = this.#known.get(text) ?? this.#lookUp(text);
    const match = longestPath > 0 ? firstMatch(tables, normalizedPath(path), longestPath) : undefined;
    const part = match?.member.path ?? "";
    const found = parts.get(part);
    if (found !== undefined) return found;
    const routed = this.#route(name, tables, match ?? firstMatch(tables, "", 0));
    parts.set(part, routed);
    return routed;
  }

  /** True when paths of this host belong to services of their own. */
  hasPaths(text: string): boolean {
    return (this.#known.get(text) ?? this.#lookUp(text)).longestPath > 0;
  }

  /** Whether the policy names this canonical host, under `hosts` or as a member. */
  isNamed(host: string): boolean {
    return this.#listed.has(host) || this.#hosts.has(host);
  }

  /** Whether the policy names this canonical host, with or without its port, or a suffix that contains it. */
  mayName(host: string): boolean {
    const bare = withoutPort(host);
    if (this.isNamed(bare) || (bare !== host && this.isNamed(host))) return true;
    if (this.#suffixes.size > 0)
      for (let dot = bare.indexOf("."); dot >= 0; dot = bare.indexOf(".", dot + 1))
        if (this.#suffixes.has(bare.slice(dot + 1))) return true;
    return false;
  }

  /** Every host that is listed or is a member of a service. */
  hostNames(): readonly string[] {
    return [...this.#listed, ...this.#hosts.keys()];
  }

  #add(member: Member, service: string): void {
    const tables = member.isSuffix ? this.#suffixes : this.#hosts;
    const { host, path, writtenPath } = member;
    const known = tables.get(host) ?? new Map<string, OwnedMember>();
    const other = known.get(path);
    if (other !== undefined)
      throw new RangeError(`${memberText(member)} is a member of ${other.service} and of ${service}`);
    tables.set(host, known.set(path, { service, path, writtenPath }));
  }

  /** The tables that may contain the host, most specific first. */
  #tablesOf(name: string, bare: string): readonly MembersByPath[] {
    const tables: MembersByPath[] = [];
    const add = (table: MembersByPath | undefined) => table !== undefined && tables.push(table);
    if (name !== bare) add(this.#hosts.get(name));
    add(this.#hosts.get(bare));
    if (this.#suffixes.size > 0)
      for (let dot = bare.indexOf("."); dot >= 0; dot = bare.indexOf(".", dot + 1))
        add(this.#suffixes.get(bare.slice(dot + 1)));
    return tables;
  }

  #lookUp(text: string): KnownHost {
    const name = canonicalHost(text);
    const tables = this.#tablesOf(name, withoutPort(name));
    const longestPath = Math.max(0, ...tables.map(longestIn));
    const known = { name, tables, longestPath, parts: new Map() };
    if (this.#known.size >= REMEMBERED_MAX) this.#known.clear();
    this.#known.set(text, known);
    return known;
  }

  #route(name: string, tables: readonly MembersByPath[], match: Match | undefined): RoutedRequest {
    const bare = withoutPort(name);
    // If the policy does not name the host at all, its ports are different servers, so the port is kept.
    const keepsPort = this.isNamed(name) || (tables.length === 0 && !this.#listed.has(bare));
    const { member: { service, path: memberPath, writtenPath } = NO_MEMBER, table } = match ?? {};
    const isPortMember = name !== bare && table !== undefined && table === this.#hosts.get(name);
    const names = memberPath !== "" ? [] : name === bare || isPortMember ? [name] : [bare, name];
    return {
      host: keepsPort ? name : bare,
      names,
      listed: names.filter(host => this.#listed.has(host)),
      service,
      memberPath,
      writtenPath,
    };
  }
}

function firstMatch(tables: readonly MembersByPath[], path: string, longestPath: number): Match | undefined {
  for (const table of tables) {
    for (const at of pathsAbove(path, longestPath)) {
      const member = table.get(at);
      if (member !== undefined) return { member, table };
    }
    const member = table.get("");
    if (member !== undefined) return { member, table };
  }
  return undefined;
}

function longestIn(table: MembersByPath): number {
  let longest = 0;
  for (const path of table.keys()) longest = Math.max(longest, path.length);
  return longest;
}

/** A canonical host without its port. The colons of an IPv6 address are inside brackets. */
export function withoutPort(host: string): string {
  const colon = host.lastIndexOf(":");
  return colon > host.lastIndexOf("]") ? host.slice(0, colon) : host;
}
