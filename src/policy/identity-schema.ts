/** The schema of `identities.yaml`. Its descriptions are those of `identity-options.ts`, for editors. */
import { z } from "zod";
import type { IdentitiesOptions } from "./identity-options.ts";
import { templateProblem } from "./identity-template.ts";
import { type Exact, extendsSchema, hostNameSchema, versionSchema } from "./parse-options.ts";

/** Headers that control the connection or the message; a wrong one breaks the connection. */
const FRAMING = /^(?:connection|content-length|expect|host|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/i;

const template = z.string().superRefine((text, context) => {
  const message = templateProblem(text);
  if (message !== undefined) context.addIssue({ code: "custom", message });
});

const queryName = z.string().regex(/^[!-~]+$/, "expected a name in printable ASCII without spaces");
const headerName = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, "expected a header name")
  .refine(name => !FRAMING.test(name), "this header cannot be set here: it controls the connection, not the identity");

const fields = {
  query: z
    .record(queryName, template.nullable())
    .optional()
    .describe(
      "Query parameters, by name. A template may contain {mailto}, {tool} or an environment variable such as {API_KEY}; a parameter without a value for each placeholder is not sent. null or false removes it. Default: none",
    ),
  headers: z
    .record(headerName, template.nullable())
    .optional()
    .describe(
      "Headers, by name. A template may contain {mailto}, {tool} or an environment variable such as {API_KEY}; a header without a value for each placeholder is not sent. null or false removes it. Default: none",
    ),
};

/** A null removes an entry. A false was changed to null before the schema sees it. */
export const identitiesSchema = z.strictObject({
  version: versionSchema,
  extends: extendsSchema,
  hosts: z
    .record(
      hostNameSchema,
      z
        .strictObject({
          path: z
            .string()
            .regex(/^\/[!-~]*$/, "expected a path such as /api")
            .optional()
            .describe(
              "Applies only to this path and the paths below it; printable ASCII that begins with a slash. Default: /",
            ),
          ...fields,
        })
        .nullable(),
    )
    .prefault({})
    .describe("Identification by host; null or false removes a host of the shipped file. Default: none"),
  services: z
    .record(z.string(), z.strictObject(fields).nullable())
    .prefault({})
    .describe(
      "Identification by service of ratelimits.yaml: every member of the service gets these fields, so name only services whose hosts may all have the key. A field that hosts has for the host wins; null or false removes a service. Default: none",
    ),
});

/** The options after each false was changed to null. */
type WithoutFalse<Type> = Type extends object ? { [Key in keyof Type]: WithoutFalse<Exclude<Type[Key], false>> } : Type;

true satisfies Exact<z.input<typeof identitiesSchema>, WithoutFalse<IdentitiesOptions>>;
