/** A view of the page: the content of one tab. */
import type { Model } from "./model.ts";

export interface View {
  readonly element: HTMLElement;
  /** Called after each change of the model, and once a second for times that count down. */
  update(model: Model): void;
}

/** The parts of an address after `#`: `#/hosts/api.example.org`. */
export interface Route {
  readonly tab: string;
  /** The selected host; empty for none. */
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
