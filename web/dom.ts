/** Builds elements. Texts become text nodes, so that nothing that a server sent is ever read as HTML. */

export type Child = Node | string | number | undefined | false;

interface Attributes {
  readonly [name: string]: string | number | boolean | undefined | ((event: Event) => void);
}

/** Creates an element. `onclick` and other functions become listeners; `true` sets an attribute without a value. */
export function h<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name);
  setAttributes(element, attributes);
  fill(element, ...children);
  return element;
}

export function svg(name: string, attributes: Attributes = {}, ...children: readonly Node[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  setAttributes(element, attributes);
  element.append(...children);
  return element;
}

/** Replaces the children. */
export function fill(element: Element, ...children: readonly Child[]): void {
  element.replaceChildren(
    ...children.flatMap(child =>
      child === undefined || child === false ? [] : [child instanceof Node ? child : visible(String(child))],
    ),
  );
}

/** Changes the text only if it differs, so that a selection in it survives. */
export function setText(element: Element, text: string): void {
  const shown = visible(text);
  if (element.textContent !== shown) element.textContent = shown;
}

export function setAttribute(element: Element, name: string, value: string): void {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** Control characters and those that change the direction of text could make one host name look like another. */
export function visible(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "·");
}

export function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no element ${id}`);
  return found;
}

function setAttributes(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
}
