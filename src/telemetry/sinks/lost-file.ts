/** Warns that a telemetry file was deleted or moved while it was written. */
export function warnOfLostFile(path: string): void {
  process.emitWarning(
    `the telemetry file ${path} was deleted or moved: it does not have the events that were written before; later ones are in a new file`,
    "DocstokgWarning",
  );
}
