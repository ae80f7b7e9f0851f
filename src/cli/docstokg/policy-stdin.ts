import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PolicyFilesCheck } from "../../policy/check-file.ts";
import type { Io } from "../program.ts";
import { usageError } from "../usage-error.ts";

/** Much longer than any policy. The limit prevents that a wrong input fills the memory. */
const BYTES_MAX = 10_000_000;

/**
 * Writes stdin to a file for `policy check -`, and deletes the file after the check. The result names the file `stdin`.
 */
export async function withStdin(
  { stdin }: Io,
  check: (file: string) => Promise<PolicyFilesCheck>,
): Promise<PolicyFilesCheck> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stdin ?? []) {
    chunks.push(Buffer.from(chunk));
    bytes += chunks.at(-1)?.length ?? 0;
    if (bytes > BYTES_MAX) throw usageError("-", `stdin has more than ${BYTES_MAX} bytes, the limit for a policy file`);
  }
  // The loader reads only files. Other users cannot read this folder: the policy may contain a password.
  const folder = await mkdtemp(join(tmpdir(), "docstokg-"));
  try {
    const path = join(folder, "stdin");
    await writeFile(path, Buffer.concat(chunks), { mode: 0o600 });
    const { files, problems, findings } = await check(path);
    const withStdinName = (text: string) => text.replaceAll(path, "stdin");
    return {
      files: files.map(({ file, kind }) => ({ file: withStdinName(file), kind })),
      problems: problems.map(problem => ({
        ...problem,
        where: withStdinName(problem.where),
        message: withStdinName(problem.message),
      })),
      findings: findings.map(finding => ({ ...finding, message: withStdinName(finding.message) })),
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
