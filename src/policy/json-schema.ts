import { z } from "zod";
import { breakersSchema } from "./breaker-schema.ts";
import { ratelimitsSchema } from "./schema.ts";

/** What editors need to complete and check the two policy files. Made from the schemas that check them here. */
export function jsonSchemas(): Readonly<Record<"ratelimits" | "breakers", object>> {
  const make = (schema: z.ZodType, title: string) => ({ title, ...z.toJSONSchema(schema, { io: "input" }) });
  return {
    ratelimits: make(ratelimitsSchema, "docstokg rate limits"),
    breakers: make(breakersSchema, "docstokg circuit breakers"),
  };
}
