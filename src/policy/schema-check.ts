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

/** The value that a schema makes from the input, or the issues of the input. */
export type CheckResult<Value> =
  | { readonly value: Value; readonly issues: readonly [] }
  | { readonly value?: undefined; readonly issues: readonly SchemaIssue[] };

/** The result for a value of a wrong type. Checks that depend on the value are skipped. */
const WRONG_TYPE = Symbol("wrong type");

/** Checks a value by a schema, and finds every issue. */
export function checkBySchema<S extends AnySchema>(schema: S, value: unknown): CheckResult<OutputOf<S>> {
  const check = new Check();
  const output = check.read(schema, value);
  return check.issues.length === 0 ? { value: output, issues: [] } : { issues: check.issues };
}

type NodeOf<Kind extends SchemaNode["kind"]> = SchemaNode & { readonly kind: Kind };

class Check {
  readonly issues: SchemaIssue[] = [];
  /** The keys from the root to the value that is read. Copied only for an issue: most values have none. */
  readonly #path: string[] = [];

  /** The value that the schema makes, or `WRONG_TYPE`. */
  read({ node }: AnySchema, value: unknown): unknown {
    switch (node.kind) {
      case "string":
        return this.#string(node, value);
      case "number":
        return this.#number(node, value);
      case "boolean":
        return typeof value === "boolean" ? value : this.#wrongType("expected boolean");
      case "one of":
        if (node.values.includes(value as string)) return value;
        return this.#wrongType(`expected ${choiceText(node.values)}`);
      case "list":
        return this.#list(node, value);
      case "map":
        return this.#map(node, value);
      case "object":
        return this.#object(node, value);
      case "union":
        return this.#union(node, value);
      case "optional":
        return value === undefined ? undefined : this.read(node.inner, value);
      case "nullable":
        return value === null ? null : this.read(node.inner, value);
      case "default":
        return this.read(node.inner, value === undefined ? node.value : value);
      case "converted":
        return this.#converted(node, value);
      case "checked":
        return this.#checked(node, value);
    }
  }

  #string({ min, max, patterns }: NodeOf<"string">, value: unknown): unknown {
    if (typeof value !== "string") return this.#wrongType("expected string");
    if (value.length < min) this.#add(`expected >=${min} characters`);
    if (value.length > max) this.#add(`expected <=${max} characters`);
    for (const { expression, message } of patterns) if (!expression.test(value)) this.#add(message);
    return value;
  }

  #number({ isInteger, bounds }: NodeOf<"number">, value: unknown): unknown {
    if (typeof value !== "number" || !Number.isFinite(value)) return this.#wrongType("expected number");
    if (isInteger && !Number.isInteger(value)) return this.#wrongType("expected a whole number");
    for (const bound of isInteger ? [...bounds, ...SAFE_INTEGERS] : bounds)
      if (!isWithin(bound, value)) this.#add(`expected ${bound.sign}${bound.limit}`);
    return value;
  }

  #list({ items, min, max }: NodeOf<"list">, value: unknown): unknown {
    if (!Array.isArray(value)) return this.#wrongType("expected a list");
    if (value.length < min) this.#add(`expected >=${min} items`);
    if (value.length > max) this.#add(`expected <=${max} items`);
    // Not `map`, which skips empty places: a list of them would be a list without rates, and so without limits.
    const output = Array.from(value, (item, index) => this.#readAt(String(index), items, item));
    return output.includes(WRONG_TYPE) ? WRONG_TYPE : output;
  }

  #map({ keys, values }: NodeOf<"map">, value: unknown): unknown {
    if (!isMap(value)) return this.#wrongType("expected a map");
    const entries: [string, unknown][] = [];
    let isWrong = false;
    for (const [key, inner] of Object.entries(value)) {
      const before = this.issues.length;
      const name = this.read(keys, key);
      if (this.issues.length > before) {
        const issues = this.issues.splice(before);
        const message = issues.map(issue => issue.message).join("; ");
        this.issues.push({ path: [...this.#path, key], message, kind: "invalid key" });
        isWrong = true;
        continue;
      }
      const output = this.#readAt(key, values, inner);
      isWrong ||= output === WRONG_TYPE;
      entries.push([String(name), output]);
    }
    // Not by assignment: the key __proto__ would change the prototype.
    return isWrong ? WRONG_TYPE : Object.fromEntries(entries);
  }

  #object({ shape, fields }: NodeOf<"object">, value: unknown): unknown {
    if (!isMap(value)) return this.#wrongType("expected a map");
    const output: Record<string, unknown> = {};
    let isWrong = false;
    for (const [key, schema] of fields) {
      const isGiven = Object.hasOwn(value, key);
      if (!isGiven && schema.node.kind === "optional") continue;
      const made = this.#readAt(key, schema, isGiven ? value[key] : undefined);
      isWrong ||= made === WRONG_TYPE;
      if (isGiven || made !== undefined) output[key] = made;
    }
    for (const key of Object.keys(value)) {
      if (Object.hasOwn(shape, key)) continue;
      this.issues.push({ path: [...this.#path, key], message: "", kind: "unknown key" });
      isWrong = true;
    }
    return isWrong ? WRONG_TYPE : output;
  }

  /** If exactly one schema fits the type of the value, its issues are reported instead of the message of the union. */
  #union({ options, message }: NodeOf<"union">, value: unknown): unknown {
    const fitting: { readonly output: unknown; readonly issues: readonly SchemaIssue[] }[] = [];
    const before = this.issues.length;
    for (const option of options) {
      const output = this.read(option, value);
      if (this.issues.length === before) return output;
      const issues = this.issues.splice(before);
      // If only conversions and checks failed, the type fits: a list of texts, one of which cannot be converted.
      const isFitting = output !== WRONG_TYPE || issues.every(({ kind }) => kind === "other");
      if (isFitting) fitting.push({ output, issues });
    }
    const [only, another] = fitting;
    if (only === undefined || another !== undefined) return this.#wrongType(message);
    this.issues.push(...only.issues);
    return only.output;
  }

  #converted({ inner, convert }: NodeOf<"converted">, value: unknown): unknown {
    const before = this.issues.length;
    const output = this.read(inner, value);
    if (this.issues.length > before) return WRONG_TYPE;
    try {
      return convert(output as never);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.#add(error.message, "other");
      return WRONG_TYPE;
    }
  }

  #checked(node: NodeOf<"checked">, value: unknown): unknown {
    const output = this.read(node.inner, value);
    if (output === WRONG_TYPE) return output;
    const message = node.problemOf(output as never);
    if (message !== undefined) this.issues.push({ path: [...this.#path, ...node.path], message, kind: "other" });
    return output;
  }

  #readAt(key: string, schema: AnySchema, value: unknown): unknown {
    this.#path.push(key);
    const output = this.read(schema, value);
    this.#path.pop();
    return output;
  }

  #add(message: string, kind: SchemaIssue["kind"] = "value"): void {
    this.issues.push({ path: [...this.#path], message, kind });
  }

  #wrongType(message: string): typeof WRONG_TYPE {
    this.#add(message);
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
