import type { AttemptFailure } from "./attempt-failure.ts";
import { type FileKind, MEDIA_TYPES } from "./downloads/file-check.ts";
import type { DownloadedFile } from "./manifest/manifest-files.ts";
import type { DoneReason } from "./reason.ts";
import type { FileRole, Resolver } from "./resolvers/resolver.ts";
import type { PendingStep, ResolutionStep } from "./step.ts";

/** The kinds of articles that are collected, the preferred one first. */
export const COLLECTED_FORMATS: readonly FileKind[] = ["pdf", "xml"];

/** Sources and supplements of one work. A deposit may have thousands of files. */
export const FURTHER_FILES_MAX = 300;

type Offer = NonNullable<Resolver["offers"]>[number];

interface CollectedFile {
  readonly role: FileRole;
  readonly mediaType: string;
  readonly reason: DoneReason;
  readonly bytes: number;
}

/** What `FileCollection` stores in the manifest, apart from the steps. */
export interface CollectedFiles {
  readonly files: readonly CollectedFile[];
  /** What was wrong with sources, supplements and further formats that could not be downloaded. */
  readonly failures: readonly string[];
  /** Whether the work has more sources and supplements than are downloaded. @default false */
  readonly isCut?: boolean | undefined;
}

/**
 * The files of one work with `--formats all`. Sources and supplements are held back until the article is stored: without
 * it they are not wanted.
 */
export class FileCollection {
  #files: readonly CollectedFile[] = [];
  #failures: readonly string[] = [];
  #held: PendingStep[] = [];
  #isCut = false;

  get hasArticle(): boolean {
    return this.#files.some(({ role }) => role === "article");
  }

  get state(): CollectedFiles {
    return { files: this.#files, failures: this.#failures, isCut: this.#isCut };
  }

  get held(): readonly PendingStep[] {
    return this.#held;
  }

  /** Adds what an earlier search for the same work has collected. Returns the steps that may start now. */
  restore({ files, failures, isCut = false }: CollectedFiles, held: readonly PendingStep[]): readonly PendingStep[] {
    this.#files = [...this.#files, ...files];
    this.#failures = [...this.#failures, ...failures];
    this.#isCut ||= isCut;
    this.#held.push(...held);
    return this.#released();
  }

  /** Returns the step of a source or supplement if the article is stored, and otherwise keeps it until then. */
  hold(pending: PendingStep): PendingStep | undefined {
    if (this.hasArticle) return pending;
    this.#held.push(pending);
    return undefined;
  }

  /** The work has a further source or supplement, beyond `FURTHER_FILES_MAX`. */
  leaveOut(): void {
    this.#isCut = true;
  }

  /** Records a stored file. Returns the steps that may start now. */
  add(
    { role = "article", mediaType, bytes }: Pick<DownloadedFile, "role" | "mediaType" | "bytes">,
    reason: DoneReason,
  ): readonly PendingStep[] {
    this.#files = [...this.#files, { role, mediaType, reason, bytes }];
    return this.#released();
  }

  /** Records the failure of a file that the work can do without. False if it cannot, because it has no article yet. */
  addFailure({ step }: PendingStep, { message }: AttemptFailure): boolean {
    if (!this.hasArticle) return false;
    this.#failures = [...this.#failures, failureText(step, message)];
    return true;
  }

  /**
   * Whether a service may have a file that the work still lacks.
   * @param offers the kinds of files that the service has besides PDFs
   */
  isWanted(offers: readonly Offer[] | undefined, pending: readonly PendingStep[]): boolean {
    if (!this.hasArticle) return true;
    const steps = [...pending, ...this.#held].map(({ step }) => step);
    return (offers ?? []).some(offer =>
      offer === "xml"
        ? !this.#has("xml") && !steps.some(step => kindOf(step) === "xml" && roleOf(step) === "article")
        : !this.#files.some(({ role }) => role === offer) && !steps.some(step => roleOf(step) === offer),
    );
  }

  /** Whether a pending step is still needed. */
  needs({ step }: PendingStep, others: readonly PendingStep[]): boolean {
    if (!this.hasArticle) return true;
    if (step.kind === "ask") return this.isWanted(step.resolver.offers, others);
    return roleOf(step) !== "article" || !this.#has(kindOf(step));
  }

  /** Whether a file would be the main file of the work, whose URL and licence are those of the work, or a further one. */
  placeOf(step: ResolutionStep): "main" | "further" {
    if (step.kind === "ask") return "main";
    if (roleOf(step) !== "article") return "further";
    const better = COLLECTED_FORMATS.slice(0, COLLECTED_FORMATS.indexOf(step.candidate.kind as FileKind) + 1);
    return better.some(kind => this.#has(kind)) ? "further" : "main";
  }

  /**
   * Undefined if the work has no article.
   * @param blocked steps that are left because a circuit is open or a quota is spent
   */
  result(
    blocked: readonly PendingStep[],
  ): { readonly reason: DoneReason; readonly message: string | undefined; readonly bytes: number } | undefined {
    const main = this.#files.find(({ role }) => role === "article");
    if (main === undefined) return undefined;
    const missed = blocked.filter(pending => this.needs(pending, []));
    const failures = [...this.#failures, ...missed.map(({ step, waitMessage = "" }) => failureText(step, waitMessage))];
    const notes = [
      ...(failures.length === 0 ? [] : [missingText(failures)]),
      ...(this.#isCut ? [`only the first ${FURTHER_FILES_MAX} sources and supplements are downloaded`] : []),
    ];
    const message = notes.length === 0 ? undefined : notes.join("; ");
    return { reason: main.reason, message, bytes: this.#files.reduce((sum, { bytes }) => sum + bytes, 0) };
  }

  #released(): readonly PendingStep[] {
    if (!this.hasArticle) return [];
    const released = this.#held;
    this.#held = [];
    return released;
  }

  #has(kind: string): boolean {
    return this.#files.some(({ role, mediaType }) => role === "article" && mediaType === MEDIA_TYPES[kind as FileKind]);
  }
}

const FAILURES_SHOWN_MAX = 3;

function missingText(failures: readonly string[]): string {
  const files = failures.length === 1 ? "1 further file" : `${failures.length} further files`;
  return `${files} could not be downloaded: ${[...new Set(failures)].slice(0, FAILURES_SHOWN_MAX).join("; ")}`;
}

function failureText(step: ResolutionStep, message: string): string {
  const what = step.kind === "ask" ? step.resolver.name : roleOf(step) === "article" ? kindOf(step) : roleOf(step);
  return `${what}: ${message}`;
}

function roleOf(step: ResolutionStep): FileRole | undefined {
  return step.kind === "fetch" ? (step.candidate.role ?? "article") : undefined;
}

function kindOf(step: ResolutionStep): string {
  return step.kind === "fetch" ? step.candidate.kind : "";
}
