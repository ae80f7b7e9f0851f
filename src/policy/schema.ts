/**
 * Schemas of configuration, as data. They are needed when a program starts, and zod would double the start time.
 * `schema-check.ts` checks values by them, and `json-schema.ts` translates them for editors.
 */

/** What a schema accepts. */
export type SchemaNode =
  | {
      readonly kind: "string";
      readonly min: number;
      readonly max: number;
      readonly patterns: readonly Pattern[];
    }
  | { readonly kind: "number"; readonly isInteger: boolean; readonly bounds: readonly Bound[] }
  | { readonly kind: "boolean" }
  | { readonly kind: "one of"; readonly values: readonly (string | number)[] }
  | { readonly kind: "list"; readonly items: AnySchema; readonly min: number; readonly max: number }
  | { readonly kind: "map"; readonly keys: AnySchema; readonly values: AnySchema }
  | { readonly kind: "object"; readonly shape: Shape; readonly fields: readonly (readonly [string, AnySchema])[] }
  | { readonly kind: "union"; readonly options: readonly AnySchema[]; readonly message: string }
  | { readonly kind: "optional" | "nullable"; readonly inner: AnySchema }
  | { readonly kind: "default"; readonly inner: AnySchema; readonly value: unknown }
  | { readonly kind: "converted"; readonly inner: AnySchema; readonly convert: (value: never) => unknown }
  | {
      readonly kind: "checked";
      readonly inner: AnySchema;
      readonly problemOf: (value: never) => string | undefined;
      /** The key below the value that the problem belongs to. */
      readonly path: readonly string[];
    };

/** A regular expression that a string must match, and the message if it does not. */
interface Pattern {
  readonly expression: RegExp;
  readonly message: string;
}

/** `>=`: the number must be at least the limit, and so on. */
export interface Bound {
  readonly sign: ">=" | ">" | "<=" | "<";
  readonly limit: number;
}

/** A schema of any type. */
export type AnySchema = Schema<unknown, unknown>;

type Shape = Readonly<Record<string, AnySchema>>;

/** The type of the values that a schema makes. */
export type OutputOf<S extends AnySchema> = S["output"];

/** The type of the values that a schema accepts. */
export type InputOf<S extends AnySchema> = S["input"];

type OptionalKeys<Types> = { [Key in keyof Types]: undefined extends Types[Key] ? Key : never }[keyof Types];
type WithOptional<Types> = { readonly [Key in Exclude<keyof Types, OptionalKeys<Types>>]: Types[Key] } & {
  readonly [Key in OptionalKeys<Types>]?: Types[Key];
};
type Flat<Type> = { [Key in keyof Type]: Type[Key] };

/** Accepts values of the type `Input` and makes values of the type `Output` from them. Immutable. */
export class Schema<Output, Input = Output> {
  declare readonly output: Output;
  declare readonly input: Input;
  readonly node: SchemaNode;
  /** For editors. */
  readonly description: string | undefined;

  constructor(node: SchemaNode, description?: string) {
    this.node = node;
    this.description = description;
  }

  describe(text: string): Schema<Output, Input> {
    return new Schema(this.node, text);
  }

  optional(): Schema<Output | undefined, Input | undefined> {
    return new Schema({ kind: "optional", inner: this });
  }

  nullable(): Schema<Output | null, Input | null> {
    return new Schema({ kind: "nullable", inner: this });
  }

  /** A value that is missing is replaced by this one, which is then checked like any other. */
  default(value: Input): Schema<Output, Input | undefined> {
    return new Schema({ kind: "default", inner: this, value });
  }

  /** Converts a valid value. A RangeError that `convert` throws is a problem of the value. */
  convert<Converted>(convert: (value: Output) => Converted): Schema<Converted, Input> {
    return new Schema({ kind: "converted", inner: this, convert });
  }

  /** `problemOf` returns what is wrong with a value, or undefined. */
  check(problemOf: (value: Output) => string | undefined, path: readonly string[] = []): Schema<Output, Input> {
    return new Schema({ kind: "checked", inner: this, problemOf, path });
  }
}

class StringSchema extends Schema<string> {
  readonly #node: SchemaNode & { kind: "string" };

  constructor(node: SchemaNode & { kind: "string" }) {
    super(node);
    this.#node = node;
  }

  min(characters: number): StringSchema {
    return new StringSchema({ ...this.#node, min: characters });
  }

  max(characters: number): StringSchema {
    return new StringSchema({ ...this.#node, max: characters });
  }

  regex(expression: RegExp, message = `must match ${expression}`): StringSchema {
    return new StringSchema({ ...this.#node, patterns: [...this.#node.patterns, { expression, message }] });
  }
}

class NumberSchema extends Schema<number> {
  readonly #node: SchemaNode & { kind: "number" };

  constructor(node: SchemaNode & { kind: "number" }) {
    super(node);
    this.#node = node;
  }

  min(limit: number): NumberSchema {
    return this.#bound(">=", limit);
  }

  above(limit: number): NumberSchema {
    return this.#bound(">", limit);
  }

  max(limit: number): NumberSchema {
    return this.#bound("<=", limit);
  }

  below(limit: number): NumberSchema {
    return this.#bound("<", limit);
  }

  #bound(sign: Bound["sign"], limit: number): NumberSchema {
    return new NumberSchema({ ...this.#node, bounds: [...this.#node.bounds, { sign, limit }] });
  }
}

class ListSchema<Output, Input> extends Schema<readonly Output[], readonly Input[]> {
  readonly #node: SchemaNode & { kind: "list" };

  constructor(node: SchemaNode & { kind: "list" }) {
    super(node);
    this.#node = node;
  }

  min(items: number): ListSchema<Output, Input> {
    return new ListSchema({ ...this.#node, min: items });
  }

  max(items: number): ListSchema<Output, Input> {
    return new ListSchema({ ...this.#node, max: items });
  }
}

export function string(): StringSchema {
  return new StringSchema({ kind: "string", min: 0, max: Number.POSITIVE_INFINITY, patterns: [] });
}

/** A finite number. */
export function number(): NumberSchema {
  return new NumberSchema({ kind: "number", isInteger: false, bounds: [] });
}

/** A whole number that a double represents exactly. */
export function integer(): NumberSchema {
  return new NumberSchema({ kind: "number", isInteger: true, bounds: [] });
}

export function boolean(): Schema<boolean> {
  return new Schema({ kind: "boolean" });
}

export function oneOf<const Value extends string | number>(...values: readonly Value[]): Schema<Value> {
  return new Schema({ kind: "one of", values });
}

export function list<Output, Input>(items: Schema<Output, Input>): ListSchema<Output, Input> {
  return new ListSchema({ kind: "list", items, min: 0, max: Number.POSITIVE_INFINITY });
}

/** A map whose keys are names that the user chooses. */
export function map<Output, Input>(
  keys: Schema<string>,
  values: Schema<Output, Input>,
): Schema<Readonly<Record<string, Output>>, Readonly<Record<string, Input>>> {
  return new Schema({ kind: "map", keys, values });
}

/** A map with fixed keys. An unknown key is a problem. */
export function object<const Fields extends Shape>(
  shape: Fields,
): Schema<
  Flat<WithOptional<{ [Key in keyof Fields]: OutputOf<Fields[Key]> }>>,
  Flat<WithOptional<{ [Key in keyof Fields]: InputOf<Fields[Key]> }>>
> {
  return new Schema({ kind: "object", shape, fields: Object.entries(shape) });
}

/** The first schema that accepts a value makes the result. The message says which values are valid. */
export function union<const Options extends readonly AnySchema[]>(
  options: Options,
  message: string,
): Schema<OutputOf<Options[number]>, InputOf<Options[number]>> {
  return new Schema({ kind: "union", options, message });
}
