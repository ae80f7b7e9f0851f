/** What the errors of an S3 service mean. The response to a HEAD request has no body, so its error has a status alone. */
import { messageOf } from "../../errors.ts";

interface S3Error {
  readonly name?: string | undefined;
  readonly $metadata?: { readonly httpStatusCode?: number | undefined } | undefined;
  readonly $response?: { readonly headers?: Readonly<Record<string, string>> | undefined } | undefined;
}

function fieldsOf(error: unknown): S3Error {
  return typeof error === "object" && error !== null ? error : {};
}

function statusOf(error: unknown): number | undefined {
  return fieldsOf(error).$metadata?.httpStatusCode;
}

/** Whether an error says that there is no such object, upload or, after a HEAD request, bucket. */
export function isNotFound(error: unknown): boolean {
  const { name } = fieldsOf(error);
  if (name === "NoSuchBucket") return false;
  return name === "NotFound" || name === "NoSuchKey" || statusOf(error) === 404;
}

/** Whether the service does not support the request, or the credentials are valid and do not permit it. */
export function isNotAllowed(error: unknown): boolean {
  const { name = "" } = fieldsOf(error);
  const status = statusOf(error);
  return name === "NotImplemented" || status === 501 || (status === 403 && !INVALID_CREDENTIALS.has(name));
}

/** Codes with which no request of these credentials would succeed. */
const INVALID_CREDENTIALS: ReadonlySet<string> = new Set([
  ...["InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired"],
  ...["RequestTimeTooSkewed", "RequestExpired", "AccountProblem", "AllAccessDisabled", "NotSignedUp"],
]);

/** Whether the same request as GET would say why it was refused. A 5xx says enough, and has been repeated already. */
export function lacksReason(error: unknown): boolean {
  const status = statusOf(error) ?? 0;
  return isUnexplained(error) && status >= 300 && status < 500 && !isNotFound(error);
}

function isUnexplained(error: unknown): boolean {
  return messageOf(error) === "UnknownError";
}

/** The message of the service, with its code or status, and the region of the bucket if it is another one. */
export function s3Message(error: unknown): string {
  const { name = "", $response } = fieldsOf(error);
  const status = statusOf(error);
  const message = isUnexplained(error) ? `the service returned status ${status ?? "unknown"}` : messageOf(error);
  const code = status !== undefined && /^[A-Z][A-Za-z]+$/.test(name) && name !== "Unknown" ? ` (${name})` : "";
  const region = $response?.headers?.["x-amz-bucket-region"];
  const isElsewhere = region !== undefined && (status === 301 || status === 400);
  return `${message}${code}${isElsewhere ? `; the bucket is in the region ${region}: set AWS_REGION` : ""}`;
}
