import { quote } from "../../core/text/quote.ts";
import { ConfigError } from "../../errors.ts";

/** A bucket, and the beginning of the keys in it: empty, or ending with a slash. */
export interface S3Location {
  readonly bucket: string;
  readonly prefix: string;
}

export function isS3Url(text: string): boolean {
  return /^s3:/i.test(text);
}

/** Parses `s3://bucket/prefix`. Throws a ConfigError. @param where the setting with the URL, for messages */
export function parseS3Url(text: string, where: string): S3Location {
  const problem = (message: string) => new ConfigError([{ where, path: "", message }]);
  const [, bucket, path = ""] = /^s3:\/\/([^/?#@:]+)(?:\/([^?#]*))?$/i.exec(text) ?? [];
  if (bucket === undefined || !/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket))
    throw problem(
      `expected s3://bucket/prefix, found ${quote(text)}; a bucket has 3 to 63 lower-case letters, digits, dots and ` +
        "hyphens; endpoint, region and credentials come from the variables AWS_…",
    );
  const parts = path.split("/").filter(part => part !== "");
  if (parts.some(part => part === "." || part === ".." || /\p{Cc}/u.test(part)))
    throw problem(`a part of the prefix is . or .. or contains control characters: ${quote(text)}`);
  return { bucket, prefix: parts.map(part => `${part}/`).join("") };
}
