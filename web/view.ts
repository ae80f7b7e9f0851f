/** A view of the page. It is made when its tab is chosen. */
import type { Model } from "./model.ts";

export interface View {
  readonly element: HTMLElement;
  /** Called after each change of the model, and once a second for times that run. */
  update(model: Model): void;
}

/** The parts of an address after `#`: `#/hosts/api.example.org`. */
export interface Route {
  readonly tab: string;
  /** The selected host or run; empty for none. */
  readonly name: string;
}

export function routeOf(hash: string): Route {
  const [, tab = "", ...rest] = hash.split("/");
  return { tab: tab === "" ? "hosts" : tab, name: decoded(rest.join("/")) };
}

export function hashOf({ tab, name }: Route): string {
  return name === "" ? `#/${tab}` : `#/${tab}/${encodeURIComponent(name)}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}
