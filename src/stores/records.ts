/** Notes where one process at a time has hold of them: what a step does, and what a new start of the clock does. */
import type { NoteSeen, NoteStep } from "./store.ts";

export interface KeptNote {
  readonly note: unknown;
  readonly keepUntilUs: number;
}

/** The notes during one exchange. */
export interface Notes {
  find(name: string): KeptNote | undefined;
  keep(name: string, note: KeptNote): void;
  list(prefix: string): readonly (KeptNote & { readonly name: string })[];
}

export function changeNote<Note, Result>(
  notes: Notes,
  name: string,
  nowUs: number,
  step: (seen: NoteSeen<Note>) => NoteStep<Note, Result>,
): Result {
  const { note, result } = step(seenAt(notes.find(name), nowUs));
  if (note !== undefined) notes.keep(name, { note: note.next, keepUntilUs: note.keepUntilUs });
  return result;
}

export function seenAt<Note>(kept: KeptNote | undefined, nowUs: number): NoteSeen<Note> {
  const isKept = kept !== undefined && kept.keepUntilUs > nowUs;
  return { note: isKept ? (kept.note as Note) : undefined, nowUs };
}

/** Those that are still kept. */
export function seenAll<Note>(
  found: readonly (KeptNote & { readonly name: string })[],
  nowUs: number,
): readonly (NoteSeen<Note> & { readonly name: string })[] {
  return found
    .map(({ name, ...kept }) => ({ name, ...seenAt<Note>(kept, nowUs) }))
    .filter(({ note }) => note !== undefined);
}

/** Every instant in it moved: fields whose names end in `Us`, however deep. 0 stays 0, which is no instant. */
export function shiftInstants<Value>(value: Value, byUs: number): Value {
  if (Array.isArray(value)) return value.map(item => shiftInstants(item, byUs)) as Value;
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      const isInstant = key.endsWith("Us") && typeof inner === "number" && inner !== 0;
      return [key, isInstant ? inner + byUs : shiftInstants(inner, byUs)];
    }),
  ) as Value;
}
