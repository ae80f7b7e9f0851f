const CERTIFICATE_ERROR =
  /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_\w+|CERT_\w+|ERR_TLS_\w+|ERR_SSL_\w+)$/;

/** Whether a certificate is refused, or a file of certificates cannot be read: no retry can succeed. */
export function isUnusableTls(error: unknown): boolean {
  const { code = "", syscall = "" } = (error instanceof Error ? error : {}) as { code?: string; syscall?: string };
  // `read` is also an operation of sockets; of files it fails only for a folder.
  return CERTIFICATE_ERROR.test(code) || syscall === "open" || code === "EISDIR";
}
