import { isMap } from "./layer.ts";
import type { AnySchema, Bound, OutputOf, SchemaNode } from "./schema.ts";

/** What is wrong with one value. */
export interface SchemaIssue {
  readonly path: readonly string[];
  /** For an unknown key: the empty text. */
  readonly message: string;
  /** `value`: the message says what was expected, so the value that was found can be added to it. */
  readonly kind: "value" | "unknown key" | "invalid key" | "other";
}

/** The value that a schema makes, or the issues; with issues the value is not to be used. */
export type CheckResult<Value> =
  | { readonly value: Value; readonly issues: readonly [] }
  | { readonly value?: undefined; readonly issues: readonly SchemaIssue[] };

/** The result for a value of a wrong type: what depends on the value is not checked. */
const WRONG_TYPE = Symbol("wrong type");

/** Checks a value by a schema, and finds every issue. */
export function checkBySchema<S extends AnySchema>(schema: S, value: unknown): CheckResult<OutputOf<S>> {
  const check = new Check();
  const output = check.read(schema, value, []);
  return check.issues.length === 0 ? { value: output, issues: [] } : { issues: check.issues };
}

type NodeOf<Kind extends SchemaNode["kind"]> = SchemaNode & { readonly kind: Kind };
type Path = readonly string[];

class Check {
  readonly issues: SchemaIssue[] = [];

  /** The value that the schema makes, or `WRONG_TYPE`. */
  read({ node }: AnySchema, value: unknown, path: Path): unknown {
    switch (node.kind) {
      case "string":
        return this.#string(node, value, path);
      case "number":
        return this.#number(node, value, path);
      case "boolean":
        return typeof value === "boolean" ? value : this.#wrongType(path, "expected boolean");
      case "one of":
        if (node.values.includes(value as string)) return value;
        return this.#wrongType(path, `expected ${choiceText(node.values)}`);
      case "list":
        return this.#list(node, value, path);
      case "map":
        return this.#map(node, value, path);
      case "object":
        return this.#object(node, value, path);
      case "union":
        return this.#union(node, value, path);
      case "optional":
        return value === undefined ? undefined : this.read(node.inner, value, path);
      case "nullable":
        return value === null ? null : this.read(node.inner, value, path);
      case "default":
        return this.read(node.inner, value === undefined ? node.value : value, path);
      case "converted":
        return this.#converted(node, value, path);
      case "checked":
        return this.#checked(node, value, path);
    }
  }

  #string({ min, max, patterns }: NodeOf<"string">, value: unknown, path: Path): unknown {
    if (typeof value !== "string") return this.#wrongType(path, "expected string");
    if (value.length < min) this.#add(path, `expected >=${min} characters`);
    if (value.length > max) this.#add(path, `expected <=${max} characters`);
    for (const { expression, message } of patterns) if (!expression.test(value)) this.#add(path, message);
    return value;
  }

  #number({ isInteger, bounds }: NodeOf<"number">, value: unknown, path: Path): unknown {
    if (typeof value !== "number" || !Number.isFinite(value)) return this.#wrongType(path, "expected number");
    if (isInteger && !Number.isInteger(value)) return this.#wrongType(path, "expected int");
    const limits = isInteger ? [...bounds, ...SAFE_INTEGERS] : bounds;
    const missed = limits.filter(bound => !isWithin(bound, value));
    for (const { sign, limit } of missed) this.#add(path, `expected ${sign}${limit}`);
    return value;
  }

  #list({ items, min, max }: NodeOf<"list">, value: unknown, path: Path): unknown {
    if (!Array.isArray(value)) return this.#wrongType(path, "expected array");
    if (value.length < min) this.#add(path, `expected >=${min} items`);
    if (value.length > max) this.#add(path, `expected <=${max} items`);
    const output = value.map((item, index) => this.read(items, item, [...path, String(index)]));
    return output.includes(WRONG_TYPE) ? WRONG_TYPE : output;
  }

  #map({ keys, values }: NodeOf<"map">, value: unknown, path: Path): unknown {
    if (!isMap(value)) return this.#wrongType(path, "expected a map");
    const entries: [string, unknown][] = [];
    let isWrong = false;
    for (const [key, inner] of Object.entries(value)) {
      const { value: name, issues } = checkBySchema(keys, key);
      if (issues.length > 0) {
        this.issues.push({
          path: [...path, key],
          message: issues.map(({ message }) => message).join("; "),
          kind: "invalid key",
        });
        isWrong = true;
        continue;
      }
      const output = this.read(values, inner, [...path, key]);
      isWrong ||= output === WRONG_TYPE;
      entries.push([String(name), output]);
    }
    // Not by assignment: the key __proto__ would change the prototype.
    return isWrong ? WRONG_TYPE : Object.fromEntries(entries);
  }

  #object({ shape }: NodeOf<"object">, value: unknown, path: Path): unknown {
    if (!isMap(value)) return this.#wrongType(path, "expected a map");
    const output: Record<string, unknown> = {};
    let isWrong = false;
    for (const [key, schema] of Object.entries(shape)) {
      const isGiven = Object.hasOwn(value, key);
      const made = this.read(schema, isGiven ? value[key] : undefined, [...path, key]);
      isWrong ||= made === WRONG_TYPE;
      if (isGiven || made !== undefined) output[key] = made;
    }
    for (const key of Object.keys(value)) {
      if (Object.hasOwn(shape, key)) continue;
      this.issues.push({ path: [...path, key], message: "", kind: "unknown key" });
      isWrong = true;
    }
    return isWrong ? WRONG_TYPE : output;
  }

  /** If exactly one schema fits the type of the value, its issues are reported instead of the message of the union. */
  #union({ options, message }: NodeOf<"union">, value: unknown, path: Path): unknown {
    const fitting: { readonly output: unknown; readonly issues: readonly SchemaIssue[] }[] = [];
    for (const option of options) {
      const check = new Check();
      const output = check.read(option, value, path);
      if (check.issues.length === 0) return output;
      // Right type, wrong content: a list of texts with one text that cannot be converted.
      const isFitting = output !== WRONG_TYPE || check.issues.every(({ kind }) => kind === "other");
      if (isFitting) fitting.push({ output, issues: check.issues });
    }
    const [only, another] = fitting;
    if (only === undefined || another !== undefined) return this.#wrongType(path, message);
    this.issues.push(...only.issues);
    return only.output;
  }

  #converted({ inner, convert }: NodeOf<"converted">, value: unknown, path: Path): unknown {
    const before = this.issues.length;
    const output = this.read(inner, value, path);
    if (this.issues.length > before) return WRONG_TYPE;
    try {
      return convert(output as never);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.#add(path, error.message, "other");
      return WRONG_TYPE;
    }
  }

  #checked(node: NodeOf<"checked">, value: unknown, path: Path): unknown {
    const output = this.read(node.inner, value, path);
    if (output === WRONG_TYPE) return output;
    const message = node.problemOf(output as never);
    if (message !== undefined) this.#add([...path, ...node.path], message, "other");
    return output;
  }

  #add(path: Path, message: string, kind: SchemaIssue["kind"] = "value"): void {
    this.issues.push({ path, message, kind });
  }

  #wrongType(path: Path, message: string): typeof WRONG_TYPE {
    this.#add(path, message);
    return WRONG_TYPE;
  }
}

const SAFE_INTEGERS: readonly Bound[] = [
  { sign: ">=", limit: Number.MIN_SAFE_INTEGER },
  { sign: "<=", limit: Number.MAX_SAFE_INTEGER },
];

function isWithin({ sign, limit }: Bound, value: number): boolean {
  if (sign === ">=") return value >= limit;
  if (sign === ">") return value > limit;
  return sign === "<=" ? value <= limit : value < limit;
}

function choiceText(values: readonly (string | number)[]): string {
  const texts = values.map(value => JSON.stringify(value));
  return texts.length === 1 ? (texts[0] ?? "") : `one of ${texts.join(", ")}`;
}
