import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkFile, type PolicyCheck } from "../../policy/check-file.ts";
import type { PolicySources } from "../../policy/load.ts";
import type { Io } from "../program.ts";
import { usageError } from "../usage-error.ts";

/** Much longer than any policy. The limit prevents that a wrong input fills the memory. */
const BYTES_MAX = 10_000_000;

/** `policy check -`: checks the policy file on stdin. Problems name it `stdin`. */
export async function checkStdin(
  { stdin }: Io,
  sources: PolicySources,
  nowMs: number,
): Promise<PolicyCheck & { readonly kind: string }> {
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
    const file = join(folder, "stdin");
    await writeFile(file, Buffer.concat(chunks), { mode: 0o600 });
    const { kind, problems, findings } = await checkFile(file, sources, nowMs);
    const withStdinName = (text: string) => text.replaceAll(file, "stdin");
    return {
      kind,
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
