/** Parts of Markdown that the generated pages use. */

/** A table. A bar inside a cell would begin a new cell, and a line break would end the table. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map(cell => escaped(cell).replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |\n`;
  return `${line(headings)}|${"---|".repeat(headings.length)}\n${rows.map(line).join("")}`;
}

/** Outside of code, a placeholder such as <file> would be an HTML tag. */
export function escaped(text: string): string {
  return text
    .split("`")
    .map((part, index) => (index % 2 === 0 ? part.replaceAll("<", "\\<") : part))
    .join("`");
}

/** A page with the note that it is generated. */
export function page(title: string, ...parts: readonly string[]): string {
  const note = "<!-- Generated from the code by npm run reference. Do not edit. -->";
  return `${[`# ${title}`, note, ...parts.map(part => part.trim())].join("\n\n")}\n`;
}

export function code(text: string): string {
  return `\`${text}\``;
}

/** The first letter as a capital, and a full stop at the end. */
export function sentence(text: string): string {
  const isList = /^[a-z-]+, [a-z-]+(?:, [a-z-]+)*(?: \(|$)/.test(text);
  // The words of a list are values that a user types.
  const capital = isList ? text : text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(capital) ? capital : `${capital}.`;
}
