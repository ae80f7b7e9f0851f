import { z } from "zod";
import { breakersSchema } from "./breaker-schema.ts";
import { identitiesSchema } from "./identity-schema.ts";
import { ratelimitsSchema } from "./ratelimit-schema.ts";

/** JSON Schemas of the policy files, for completion and checks in editors, generated from the schemas of the loader. */
export function jsonSchemas(): Readonly<Record<"ratelimits" | "breakers" | "identities", object>> {
  const make = (schema: z.ZodType, title: string) => ({ title, ...z.toJSONSchema(schema, { io: "input", override }) });
  return {
    ratelimits: make(ratelimitsSchema, "docstokg rate limits"),
    breakers: make(breakersSchema, "docstokg circuit breakers"),
    identities: make(identitiesSchema, "docstokg identification"),
  };
}

/** Allows false wherever null is allowed. Both remove an entry: the loader changes false to null before it validates. */
function override({
  zodSchema,
  jsonSchema,
}: {
  readonly zodSchema: z.core.$ZodTypes;
  jsonSchema: z.core.JSONSchema.BaseSchema;
}) {
  if (zodSchema._zod.def.type === "nullable") jsonSchema.anyOf?.push({ const: false });
}
