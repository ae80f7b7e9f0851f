/** The keys of `identities.yaml`, also when it is passed as an object. The schema repeats these texts; a test compares them. */

/** A template for each field, by the field's name; null or false removes a field of the shipped file. */
export type IdentityTemplates = Readonly<Record<string, string | null | false>>;

/** How requests to one host, or to the members of one service, are identified. */
export interface IdentityFieldsOptions {
  /**
   * Query parameters, by name. A template may contain {mailto}, {tool} or an environment variable such as {API_KEY}; a
   * parameter without a value for each placeholder is not sent. null or false removes it. @default none
   */
  readonly query?: IdentityTemplates | undefined;
  /**
   * Headers, by name. A template may contain {mailto}, {tool} or an environment variable such as {API_KEY}; a header
   * without a value for each placeholder is not sent. null or false removes it. @default none
   */
  readonly headers?: IdentityTemplates | undefined;
}

/** How requests to one host are identified. */
export interface HostIdentityOptions extends IdentityFieldsOptions {
  /** Applies only to this path and the paths below it; printable ASCII that begins with a slash. @default / */
  readonly path?: string | undefined;
}

/** The identification of requests to each host and service: the content of `identities.yaml`. */
export interface IdentitiesOptions {
  /** Version of the file format: 1. @default 1 */
  readonly version?: 1 | undefined;
  /**
   * default: fields of this file replace those of the shipped file, and its other fields stay; none: the shipped file
   * is ignored. @default default
   */
  readonly extends?: "default" | "none" | undefined;
  /** Identification by host; null or false removes a host of the shipped file. @default none */
  readonly hosts?: Readonly<Record<string, HostIdentityOptions | null | false>> | undefined;
  /**
   * Identification by service of ratelimits.yaml: every member of the service gets these fields, so name only services
   * whose hosts may all have the key. A field of the host under hosts wins; null or false removes a service.
   * @default none
   */
  readonly services?: Readonly<Record<string, IdentityFieldsOptions | null | false>> | undefined;
}
