import { z } from "zod";
import { breakersSchema } from "./breaker-schema.ts";
import { identitiesSchema } from "./identity-schema.ts";
import { ratelimitsSchema } from "./ratelimit-schema.ts";

/** JSON Schemas with which editors complete and check the policy files, made from the schemas that load them. */
export function jsonSchemas(): Readonly<Record<"ratelimits" | "breakers" | "identities", object>> {
  const make = (schema: z.ZodType, title: string) => ({ title, ...z.toJSONSchema(schema, { io: "input", override }) });
  return {
    ratelimits: make(ratelimitsSchema, "docstokg rate limits"),
    breakers: make(breakersSchema, "docstokg circuit breakers"),
    identities: make(identitiesSchema, "docstokg identification"),
  };
}

/** Where null removes an entry, false does too: the loader changes false to null before the schema sees it. */
function override({
  zodSchema,
  jsonSchema,
}: {
  readonly zodSchema: z.core.$ZodTypes;
  jsonSchema: z.core.JSONSchema.BaseSchema;
}) {
  if (zodSchema._zod.def.type === "nullable") jsonSchema.anyOf?.push({ const: false });
}
