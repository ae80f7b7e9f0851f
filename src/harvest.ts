/** `docstokg/harvest`: what `docstokg run` is made of. Works go in, results come out, files are in a folder. */
export type { FileKind } from "./harvest/downloads/file-check.ts";
export type { Layout } from "./harvest/downloads/layout.ts";
export type { MetadataFormat } from "./harvest/downloads/metadata-file.ts";
export { type HarvestedFile, type HarvestOptions, type HarvestResult, harvest } from "./harvest/harvest.ts";
export { type IdentifyResult, identify } from "./harvest/identifiers/identifiers.ts";
export type { DoneReason, Reason } from "./harvest/reason.ts";
export { RESOLVERS } from "./harvest/resolvers/order.ts";
export type {
  BatchLookup,
  Candidate,
  Finding,
  Resolver,
  ResolverRequest,
  ResolverResponse,
} from "./harvest/resolvers/resolver.ts";
export type { MetadataSources, Work, WorkAuthor, WorkIds, WorkMetadata } from "./harvest/work.ts";
export type { WorkFilter } from "./harvest/work-filter.ts";
