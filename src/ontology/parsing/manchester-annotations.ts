import type { ManchesterPart } from "./manchester-frames.ts";
import { SyntaxProblem } from "./syntax-problem.ts";

/**
 * The annotations before an item: `SubClassOf: Annotations: p "v", q "w" A`. They end where neither a comma nor a part
 * of an annotation follows. Annotations may have annotations themselves. They give no statements.
 */
export class ManchesterAnnotations {
  /** The parts of the open annotation of each list, the innermost list last. */
  readonly #lists: ManchesterPart[][] = [];

  /** Opens a list, at the beginning of an item or of an annotation. */
  begin(): void {
    this.#checkComplete(parts => parts.length === 0);
    this.#lists.push([]);
  }

  /** Whether the token belongs to the annotations. Otherwise they are closed. */
  takes(part: ManchesterPart): boolean {
    for (let parts = this.#lists.at(-1); parts !== undefined; parts = this.#lists.at(-1)) {
      if (continues(parts, part)) {
        parts.push(part);
        return true;
      }
      this.#checkComplete(isComplete);
      if (part.type === "mark" && part.value === ",") {
        parts.length = 0;
        return true;
      }
      this.#lists.pop();
    }
    return false;
  }

  /** At a keyword or the end of the file. */
  close(): void {
    this.#checkComplete(isComplete);
    this.#lists.length = 0;
  }

  #checkComplete(isExpected: (parts: readonly ManchesterPart[]) => boolean): void {
    const parts = this.#lists.at(-1);
    if (parts !== undefined && !isExpected(parts))
      throw new SyntaxProblem("incomplete annotation; expected a property and a value");
  }
}

/** Whether the part is the next one of `property value`, `property "text"@language` or `property "text"^^datatype`. */
function continues([property, value, qualifier, datatype]: readonly ManchesterPart[], part: ManchesterPart): boolean {
  const { type } = part;
  if (property === undefined) return type === "name";
  if (value === undefined) return type === "name" || type === "string" || type === "word";
  if (qualifier === undefined) return value.type === "string" && (type === "language" || isCarets(part));
  return datatype === undefined && isCarets(qualifier) && (type === "name" || type === "word");
}

function isComplete([, value, qualifier, datatype]: readonly ManchesterPart[]): boolean {
  return value !== undefined && (qualifier === undefined || !isCarets(qualifier) || datatype !== undefined);
}

function isCarets({ type, value }: ManchesterPart): boolean {
  return type === "mark" && value === "^^";
}
