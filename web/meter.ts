/** A bar that shows how much of a limit is used. */
import type { KeyState } from "../src/dashboard/dashboard-state.ts";
import { h, setAttribute } from "./dom.ts";

export function meter(label: string): HTMLElement {
  return h("span", { class: "meter", role: "img", "aria-label": label }, h("span"));
}

/** True if calls wait for the key, or if the key is held. A limit that is used up needs no warning if no call waits. */
export function isStopped({ waiting, isHeld }: KeyState): boolean {
  return waiting > 0 || isHeld;
}

/** @param share 0 to 1; more is shown as full */
export function setMeter(element: HTMLElement, share: number, isWarning: boolean, label: string): void {
  const bar = element.firstElementChild as HTMLElement;
  bar.style.width = `${Math.min(100, Math.round(share * 100))}%`;
  setAttribute(element, "data-level", isWarning && share >= 1 ? "full" : "low");
  setAttribute(element, "aria-label", label);
  setAttribute(element, "title", label);
}
