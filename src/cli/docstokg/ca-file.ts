import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { getCACertificates } from "node:tls";
import { readProblem } from "../file-problems.ts";

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/**
 * The certificates to trust when `--ca` names a file: those that Node trusts, and those of the file, in PEM.
 * Throws an Error with a message for the user if the file cannot be read or contains no valid certificate.
 */
export function trustedCertificates(file: string): string {
  const found = textOf(file).match(CERTIFICATE) ?? [];
  if (found.length === 0) throw new Error(`${file} contains no certificate in PEM form`);
  // Checked here, because Node ignores certificates that it cannot parse.
  for (const [index, certificate] of found.entries()) {
    if (!isValid(certificate)) throw new Error(`certificate ${index + 1} of ${file} is invalid`);
  }
  return [...getCACertificates("default"), ...found].join("\n");
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new Error(readProblem(file, cause), { cause });
  }
}

function isValid(certificate: string): boolean {
  try {
    new X509Certificate(certificate);
    return true;
  } catch {
    return false;
  }
}
