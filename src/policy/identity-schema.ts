/** The schema of `identities.yaml`. Its descriptions are those of `identity-options.ts`, for editors. */
import type { IdentitiesOptions } from "./identity-options.ts";
import { templateProblem } from "./identity-template.ts";
import { type Exact, extendsSchema, hostNameSchema, versionSchema } from "./parse-options.ts";
import * as s from "./schema.ts";

/** Headers that control the connection or the message; a wrong one breaks the connection. */
const FRAMING = /^(?:connection|content-length|expect|host|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/i;

const template = s.string().check(templateProblem);

const queryName = s.string().regex(/^[!-~]+$/, "expected a name in printable ASCII without spaces");
const headerName = s
  .string()
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, "expected a header name")
  .check(name =>
    FRAMING.test(name) ? "this header cannot be set here: it controls the connection, not the identity" : undefined,
  );

const fields = {
  query: s
    .map(queryName, template.nullable())
    .optional()
    .describe(
      "Query parameters, by name. A template may contain {mailto}, {tool} or an environment variable such as {API_KEY}; a parameter without a value for each placeholder is not sent. null or false removes it. Default: none",
    ),
  headers: s
    .map(headerName, template.nullable())
    .optional()
    .describe(
      "Headers, by name. A template may contain {mailto}, {tool} or an environment variable such as {API_KEY}; a header without a value for each placeholder is not sent. null or false removes it. Default: none",
    ),
};

/** A null removes an entry. A false was changed to null before the schema sees it. */
export const identitiesSchema = s.object({
  version: versionSchema,
  extends: extendsSchema,
  hosts: s
    .map(
      hostNameSchema,
      s
        .object({
          path: s
            .string()
            .regex(/^\/[!"$->@-~]*$/, "expected a path such as /api, without a query")
            .optional()
            .describe(
              "Applies only to this path and the paths below it; printable ASCII that begins with a slash. Default: /",
            ),
          ...fields,
        })
        .nullable(),
    )
    .default({})
    .describe("Identification by host; null or false removes a host of the shipped file. Default: none"),
  services: s
    .map(s.string(), s.object(fields).nullable())
    .default({})
    .describe(
      "Identification by service of ratelimits.yaml: every member of the service gets these fields, so name only services whose hosts may all have the key. A field of the host under hosts wins; null or false removes a service. Default: none",
    ),
});

/** The options after each false was changed to null. */
type WithoutFalse<Type> = Type extends object ? { [Key in keyof Type]: WithoutFalse<Exclude<Type[Key], false>> } : Type;

true satisfies Exact<s.InputOf<typeof identitiesSchema>, WithoutFalse<IdentitiesOptions>>;
