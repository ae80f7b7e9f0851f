import { ConfigError } from "../../errors.ts";

/** The part of `@aws-sdk/client-s3`, an optional peer dependency, that this module uses. */
export interface S3Module {
  readonly S3Client: new (options: Readonly<Record<string, unknown>>) => S3Client;
  readonly HeadBucketCommand: Command;
  readonly HeadObjectCommand: Command;
  readonly GetObjectCommand: Command;
  readonly PutObjectCommand: Command;
  readonly CopyObjectCommand: Command;
  readonly DeleteObjectCommand: Command;
  readonly CreateMultipartUploadCommand: Command;
  readonly UploadPartCommand: Command;
  readonly CompleteMultipartUploadCommand: Command;
  readonly AbortMultipartUploadCommand: Command;
  readonly ListMultipartUploadsCommand: Command;
  readonly ListObjectsV2Command: Command;
}

type Command = new (input: Readonly<Record<string, unknown>>) => object;

export interface S3Client {
  send(command: object, options?: { readonly abortSignal?: AbortSignal }): Promise<S3Output>;
  destroy(): void;
}

export interface S3Output {
  readonly ContentLength?: number;
  readonly ETag?: string;
  /** Further fields of the object, by their names in lower case. */
  readonly Metadata?: Readonly<Record<string, string>>;
  readonly UploadId?: string;
  readonly Body?: AsyncIterable<Uint8Array>;
  readonly Uploads?: readonly { readonly Key?: string; readonly UploadId?: string; readonly Initiated?: Date }[];
  readonly IsTruncated?: boolean;
  readonly NextKeyMarker?: string;
  readonly NextUploadIdMarker?: string;
  readonly Contents?: readonly { readonly Key?: string; readonly LastModified?: Date }[];
  readonly CommonPrefixes?: readonly { readonly Prefix?: string }[];
  readonly NextContinuationToken?: string;
}

const CONNECT_TIMEOUT_MS = 10_000;
/** How long a connection may transfer nothing. A request that ends so is repeated, see `maxAttempts`. */
const SILENCE_MAX_MS = 30_000;

export interface S3Connection {
  readonly client: S3Client;
  readonly module: S3Module;
}

/**
 * A client for the endpoint, region and credentials of the environment (`AWS_ENDPOINT_URL_S3`, `AWS_REGION`,
 * `AWS_ACCESS_KEY_ID` or any other source of the SDK). Throws a ConfigError if the package is not installed.
 * @param where the setting with the URL, for messages
 */
export async function connectS3(where: string): Promise<S3Connection> {
  const module = await loadSdk(where);
  const endpoint = process.env["AWS_ENDPOINT_URL_S3"] || process.env["AWS_ENDPOINT_URL"];
  const client = new module.S3Client({
    // Most services other than AWS have no host name for each bucket.
    forcePathStyle: Boolean(endpoint),
    ...(process.env["AWS_REGION"] || process.env["AWS_DEFAULT_REGION"] || !endpoint ? {} : { region: "us-east-1" }),
    // Many services do not know the newer checksums; uploads have Content-MD5 instead.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    maxAttempts: 5,
    // Without these, a service that accepts a connection and never answers would stop the program for ever.
    requestHandler: { connectionTimeout: CONNECT_TIMEOUT_MS, socketTimeout: SILENCE_MAX_MS },
  });
  return { client, module };
}

async function loadSdk(where: string): Promise<S3Module> {
  // Not a literal, because the compiler would look for the types of the package.
  const name: string = "@aws-sdk/client-s3";
  try {
    return (await import(name)) as S3Module;
  } catch (cause) {
    const message = "an s3:// URL needs the package @aws-sdk/client-s3: npm install @aws-sdk/client-s3";
    throw new ConfigError([{ where, path: "", message }], { cause });
  }
}
