import type { EventBodyOf, EventType } from "../events.ts";

type KeysOf<Union> = Union extends unknown ? Exclude<keyof Union, "event_type"> : never;
type ValueAt<Union, Key extends PropertyKey> = Union extends unknown
  ? Key extends keyof Union
    ? Union[Key]
    : undefined
  : never;
type Plain<Value> = [Value] extends [number]
  ? "number"
  : [Value] extends [boolean]
    ? "flag"
    : [Value] extends [string]
      ? "text"
      : "number or text";
type KindOf<Value> = undefined extends Value ? `${Plain<Exclude<Value, undefined>>}?` : Plain<Value>;

/** `?` marks a field that may be absent. */
export type FieldKind = `${"number" | "flag" | "text" | "number or text"}${"" | "?"}`;
export type FieldSpec = readonly [kind: FieldKind, about: string];

type SpecOf<Type extends EventType> = {
  readonly about: string;
  readonly fields: {
    readonly [Key in KeysOf<EventBodyOf<Type>>]: readonly [
      kind: KindOf<ValueAt<EventBodyOf<Type>, Key>>,
      about: string,
    ];
  };
};

/** The description and the fields of each event. The compiler checks that no field is missing and that kinds match. */
export type EventSpecs = { readonly [Type in EventType]: SpecOf<Type> };

// Fields that several events have.
export const callId = [
  "text",
  "id of the call, unique among all processes; the same in all events of the call",
] as const;
export const host = ["text", "canonical host"] as const;
export const key = ["text", "the host, or the service whose limits apply"] as const;
export const role = ["text", "`metadata`, `landing` or `artifact`"] as const;
