/** `docstokg/harvest`, the library behind `docstokg run`: stores the files of works and yields a result for each work. */
import "./http/supported-runtime.ts";

export type { FileKind } from "./harvest/downloads/file-check.ts";
export { LAYOUTS, type Layout, type LayoutTemplate } from "./harvest/downloads/layout.ts";
export { METADATA_FORMATS, type MetadataFormat } from "./harvest/downloads/metadata-file.ts";
export { type HarvestedFile, type HarvestResult, harvest } from "./harvest/harvest.ts";
export type { HarvestOptions } from "./harvest/harvest-options.ts";
export { type IdentifyResult, identify } from "./harvest/identifiers/identifiers.ts";
export { REASONS, type Reason } from "./harvest/reason.ts";
export { RESOLVERS } from "./harvest/resolvers/order.ts";
export type {
  BatchLookup,
  Candidate,
  FileRole,
  Finding,
  Resolver,
  ResolverRequest,
  ResolverResponse,
} from "./harvest/resolvers/resolver.ts";
export type { FileStorage, FileToPut } from "./harvest/storage/file-storage.ts";
export type { MetadataSources, Work, WorkAuthor, WorkIds, WorkMetadata } from "./harvest/work.ts";
export type { WorkFilter } from "./harvest/work-filter.ts";
