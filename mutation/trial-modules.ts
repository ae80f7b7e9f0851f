/**
 * Imports test files in a trial process. Each import has a generation, which all modules of the project below it get too,
 * so that they begin without any state.
 */
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { relative, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type CollectedTest, collectTests } from "./collected-tests.ts";
import { instrumentedOf, steppedOf } from "./instrumented.ts";
import { mutantsOf } from "./mutants.ts";
import { reserve } from "./switch.ts";

const TESTS = new URL("./collected-tests.ts", import.meta.url).href;
const TOOL = new URL("./", import.meta.url).href;

/** The mutants of a file have the numbers from `first` on. */
interface Numbers {
  readonly file: string;
  readonly first: number;
  readonly size: number;
}

export class TrialModules {
  readonly #root: string;
  readonly #mutated: ReadonlySet<string>;
  readonly #texts = new Map<string, string>();
  readonly #numbers = new Map<string, Numbers>();
  readonly #filesOf = new Map<string, Set<string>>();
  #generation = 0;
  #shared = this.fresh();
  readonly #sharing = new Map<string, Promise<readonly CollectedTest[]>>();

  /** `mutated` are the files with mutants, relative to `root`. */
  constructor(root: string, mutated: readonly string[]) {
    this.#root = root;
    this.#mutated = new Set(mutated);
    registerHooks({
      resolve: (specifier, context, next) => {
        const generation = this.#generationOf(context.parentURL);
        if (generation === undefined) return next(specifier, context);
        if (specifier === "node:test") return { url: TESTS, shortCircuit: true };
        const result = next(specifier, context);
        return this.#isOfProject(result.url) ? { ...result, url: `${result.url}?generation=${generation}` } : result;
      },
      load: (url, context, next) => {
        const generation = this.#generationOf(url);
        if (generation === undefined) return next(url, context);
        const file = relative(this.#root, fileURLToPath(url));
        this.#filesOf.get(generation)?.add(file);
        return { format: "module", source: this.#textOf(file), shortCircuit: true };
      },
    });
  }

  /** Imports a test file and all that it needs anew. Files that share a generation share their modules. */
  async load(test: string, generation = this.fresh()): Promise<readonly CollectedTest[]> {
    if (!this.#filesOf.has(generation)) this.#filesOf.set(generation, new Set());
    const url = pathToFileURL(resolve(this.#root, test)).href;
    return collectTests(() => import(`${url}?generation=${generation}`));
  }

  /** The tests of a file whose modules are shared with other test files and with later trials. */
  shared(test: string): Promise<readonly CollectedTest[]> {
    const loaded = this.#sharing.get(test) ?? this.load(test, this.#shared);
    this.#sharing.set(test, loaded);
    return loaded;
  }

  /** The shared modules are imported anew. */
  renew(): void {
    this.#shared = this.fresh();
    this.#sharing.clear();
  }

  /** A generation that no module has. */
  fresh(): string {
    this.#generation += 1;
    return String(this.#generation);
  }

  /** The files of the project that were imported in a generation. */
  filesOf(generation: string): readonly string[] {
    return [...(this.#filesOf.get(generation) ?? [])].sort();
  }

  numberOf(file: string, index: number): number {
    return this.#numbersOf(file).first + index;
  }

  /** How many mutants a file has. */
  sizeOf(file: string): number {
    return this.#numbersOf(file).size;
  }

  /** The numbers of mutants as their positions among the mutants of their files. */
  byFile(numbers: readonly number[]): Readonly<Record<string, readonly number[]>> {
    const found: Record<string, readonly number[]> = {};
    for (const { file, first, size } of this.#numbers.values()) {
      const inside = numbers.filter(number => number >= first && number < first + size);
      if (inside.length > 0) found[file] = inside.map(number => number - first);
    }
    return found;
  }

  #numbersOf(file: string): Numbers {
    const known = this.#numbers.get(file);
    if (known !== undefined) return known;
    const { length: size } = mutantsOf(file, readFileSync(resolve(this.#root, file), "utf8"));
    const numbers = { file, first: reserve(size), size };
    this.#numbers.set(file, numbers);
    return numbers;
  }

  #textOf(file: string): string {
    const known = this.#texts.get(file);
    if (known !== undefined) return known;
    const source = readFileSync(resolve(this.#root, file), "utf8");
    const text = this.#mutated.has(file) ? instrumentedOf(source, this.#numbersOf(file).first) : steppedOf(source);
    this.#texts.set(file, text);
    return text;
  }

  #generationOf(url: string | undefined): string | undefined {
    return url === undefined ? undefined : /\?generation=(\d+)$/.exec(url)?.[1];
  }

  #isOfProject(url: string): boolean {
    const isInside = url.startsWith(pathToFileURL(`${this.#root}/`).href) && !url.startsWith(TOOL);
    return isInside && url.endsWith(".ts") && !url.includes("/node_modules/");
  }
}
