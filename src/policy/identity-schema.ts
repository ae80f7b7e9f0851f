/** The shape of `identities.yaml` and of the same as an object; keys as users write them. */
import { z } from "zod";
import { templateProblem } from "./identity-template.ts";
import { hostNameSchema } from "./ratelimit-schema.ts";

/** Fields that say how a message is framed or where it goes; a wrong one breaks the connection, not the request. */
const FRAMING = /^(?:connection|content-length|expect|host|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/i;

const template = z.string().superRefine((text, context) => {
  const message = templateProblem(text);
  if (message !== undefined) context.addIssue({ code: "custom", message });
});

const fields = (name: z.ZodString) =>
  z
    .record(name, template.nullable())
    .optional()
    .describe("Names and templates with {mailto}, {tool} or {VARIABLE}; null sends none");
const queryName = z.string().regex(/^[!-~]+$/, "expected a name in printable ASCII without blanks");
const headerName = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, "expected the name of a header")
  .refine(name => !FRAMING.test(name), "this header is not for saying who calls");

/** Null switches off. A false has become one before the schema looks. */
export const identitiesSchema = z.strictObject({
  version: z.literal(1).optional(),
  /** Whether a file adds to the shipped one or stands alone. */
  extends: z.enum(["default", "none"]).optional(),
  hosts: z
    .record(
      hostNameSchema,
      z
        .strictObject({
          path: z
            .string()
            .regex(/^\/[!-~]*$/, "expected a path such as /api")
            .optional()
            .describe("Only for what lies at or below this path"),
          query: fields(queryName),
          headers: fields(headerName),
        })
        .nullable(),
    )
    .prefault({}),
});

type FieldTemplates = Readonly<Record<string, string | null | false>>;

/** What a user may write for one host. */
export interface HostIdentityOptions {
  /** @default "/" */
  readonly path?: string | undefined;
  readonly query?: FieldTemplates | undefined;
  readonly headers?: FieldTemplates | undefined;
}

/** What a user may write. */
export interface IdentitiesOptions {
  readonly version?: 1 | undefined;
  readonly extends?: "default" | "none" | undefined;
  /** Null or false switches off what the shipped file says of a host, or a field of it. */
  readonly hosts?: Readonly<Record<string, HostIdentityOptions | null | false>> | undefined;
}
