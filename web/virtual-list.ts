/** A list that has elements for its visible rows only, so that thousands of rows stay smooth. */
import { h, setAttribute } from "./dom.ts";

/** Rows above and below the visible part that are kept ready. */
const OVERSCAN = 6;

export interface RowKind<Item> {
  readonly key: (item: Item) => string;
  readonly create: () => HTMLElement;
  readonly update: (row: HTMLElement, item: Item) => void;
}

export class VirtualList<Item> {
  readonly element: HTMLElement;
  readonly #inner: HTMLElement;
  readonly #kind: RowKind<Item>;
  readonly #rows = new Map<string, HTMLElement>();
  #items: readonly Item[] = [];
  #rowHeight = 0;
  #isScheduled = false;

  constructor(label: string, kind: RowKind<Item>) {
    this.#kind = kind;
    this.#inner = h("div", { class: "rows", role: "list", "aria-label": label });
    this.element = h("div", { class: "scroller", tabindex: -1 }, this.#inner);
    this.element.addEventListener("scroll", () => this.#schedule(), { passive: true });
    new ResizeObserver(() => {
      this.#rowHeight = 0;
      this.#schedule();
    }).observe(this.element);
  }

  set(items: readonly Item[]): void {
    this.#items = items;
    this.#schedule();
  }

  /** Moves the focus by so many rows from the focused one. */
  moveFocus(by: number): void {
    const focused = document.activeElement?.closest<HTMLElement>("[data-key]");
    const at = this.#indexOf(focused?.dataset["key"]);
    this.#focusAt(Math.max(0, Math.min(this.#items.length - 1, at + by)));
  }

  /** Moves the focus to the row of an item, or to the first row if the list does not have the item. */
  focusItem(key: string): void {
    this.#focusAt(Math.max(0, this.#indexOf(key)));
  }

  #indexOf(key: string | undefined): number {
    return this.#items.findIndex(item => this.#kind.key(item) === key);
  }

  #focusAt(index: number): void {
    const item = this.#items[index];
    if (item === undefined) return;
    const top = index * this.#height();
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (top + this.#height() > scrollTop + clientHeight)
      this.element.scrollTop = top + this.#height() - clientHeight;
    this.#render();
    this.#rows.get(this.#kind.key(item))?.querySelector<HTMLElement>("button")?.focus({ preventScroll: true });
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    requestAnimationFrame(() => {
      this.#isScheduled = false;
      this.#render();
    });
  }

  /** The height of a row depends on the width of the page; the style decides it. */
  #height(): number {
    if (this.#rowHeight > 0) return this.#rowHeight;
    const height = Number.parseFloat(getComputedStyle(this.element).getPropertyValue("--row"));
    this.#rowHeight = height > 0 ? height : 40;
    return this.#rowHeight;
  }

  #render(): void {
    const height = this.#height();
    const { scrollTop, clientHeight } = this.element;
    const first = Math.max(0, Math.floor(scrollTop / height) - OVERSCAN);
    const last = Math.min(this.#items.length, Math.ceil((scrollTop + clientHeight) / height) + OVERSCAN);
    this.#inner.style.height = `${this.#items.length * height}px`;
    const focused = document.activeElement;
    const wanted = new Set<string>();
    for (let index = first; index < last; index += 1) {
      const item = this.#items[index] as Item;
      const key = this.#kind.key(item);
      wanted.add(key);
      this.#show(key, item, index, height);
    }
    for (const [key, row] of this.#rows) {
      if (wanted.has(key)) continue;
      row.remove();
      this.#rows.delete(key);
    }
    this.#sort([...wanted]);
    // An element that is moved loses the focus.
    if (focused instanceof HTMLElement && focused !== document.activeElement && focused.isConnected)
      focused.focus({ preventScroll: true });
  }

  /** Screen readers read the rows in the order of the document, wherever they are drawn. */
  #sort(keys: readonly string[]): void {
    let next = this.#inner.firstElementChild;
    for (const key of keys) {
      const row = this.#rows.get(key);
      if (row === undefined) continue;
      if (row === next) next = row.nextElementSibling;
      else this.#inner.insertBefore(row, next);
    }
  }

  #show(key: string, item: Item, index: number, height: number): void {
    let row = this.#rows.get(key);
    if (row === undefined) {
      row = this.#kind.create();
      row.classList.add("row");
      row.setAttribute("role", "listitem");
      row.dataset["key"] = key;
      this.#rows.set(key, row);
      this.#inner.append(row);
    }
    setAttribute(row, "aria-setsize", String(this.#items.length));
    setAttribute(row, "aria-posinset", String(index + 1));
    row.style.transform = `translateY(${index * height}px)`;
    this.#kind.update(row, item);
  }
}
