/** A parser under fuzzing, and the law that it must keep for every input. */
export interface FuzzTarget {
  /** Its name on the command line, and the name of its corpus file. */
  readonly name: string;
  /** Valid inputs to begin with. */
  readonly seeds: readonly (string | Buffer)[];
  /** Texts that are inserted into inputs: keywords and separators of the format. */
  readonly words: readonly string[];
  /** Parses one input. Throws if the parser breaks its law; an error that the parser documents is caught here. */
  readonly run: (input: Buffer) => void | Promise<void>;
}

type ErrorClass = abstract new (...args: never[]) => Error;

/** Calls a parser. Returns undefined if it throws an error of one of these classes, which its documentation names. */
export function parsed<Value>(parse: () => Value, ...documented: readonly ErrorClass[]): Value | undefined {
  try {
    return parse();
  } catch (error) {
    if (isDocumented(error, documented)) return undefined;
    throw error;
  }
}

/** The same for a parser that returns a promise. */
export async function parsedLater<Value>(
  parse: () => Promise<Value>,
  ...documented: readonly ErrorClass[]
): Promise<Value | undefined> {
  try {
    return await parse();
  } catch (error) {
    if (isDocumented(error, documented)) return undefined;
    throw error;
  }
}

/** Of exactly one of these classes: a RangeError of an exhausted stack is not the RangeError of a parser. */
function isDocumented(error: unknown, documented: readonly ErrorClass[]): boolean {
  if (!(error instanceof Error) || error.message.includes("call stack")) return false;
  return documented.some(errorClass => error instanceof errorClass);
}
