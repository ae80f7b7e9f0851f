import { isS3Url } from "../files/s3/s3-url.ts";
import type { Time } from "../time/time.ts";
import { FolderOntologyStore } from "./folder-ontology-store.ts";
import type { OntologyStore } from "./ontology-store.ts";

/**
 * Sends no request.
 * @param store the absolute path of a folder, or `s3://bucket/prefix`
 * @throws ConfigError if the package for S3 is not installed.
 */
export async function openOntologyStore(store: string, time: Time): Promise<OntologyStore> {
  if (!isS3Url(store)) return new FolderOntologyStore(store);
  return (await import("./s3-ontology-store.ts")).S3OntologyStore.open(store, time);
}
