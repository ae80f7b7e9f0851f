/**
 * Writes queued events when the process ends without `telemetry.close()`: at its normal end, at `process.exit()`, after an
 * uncaught exception or rejection, and at SIGINT, SIGTERM and SIGHUP. SIGKILL, a crash of Node and a power failure cannot
 * be noticed.
 */
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

const flushes = new Set<() => void>();

/** Returns a function that removes `flush`. The handlers of the process exist only while there is one. */
export function flushAtExit(flush: () => void): () => void {
  if (flushes.size === 0) install();
  flushes.add(flush);
  return () => {
    if (flushes.delete(flush) && flushes.size === 0) uninstall();
  };
}

function install(): void {
  process.on("exit", flushAll);
  process.on("uncaughtExceptionMonitor", flushAll);
  for (const signal of SIGNALS) process.prependListener(signal, onSignal);
}

function uninstall(): void {
  process.off("exit", flushAll);
  process.off("uncaughtExceptionMonitor", flushAll);
  for (const signal of SIGNALS) process.off(signal, onSignal);
}

function flushAll(): void {
  for (const flush of flushes) flush();
}

/**
 * A signal with a handler no longer ends the process. So this handler removes itself and sends the signal again, unless
 * the program has handlers of its own. These run after the removal: a library that ends the process only when its handler
 * is the only one still ends it.
 */
function onSignal(signal: NodeJS.Signals): void {
  flushAll();
  process.off(signal, onSignal);
  if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
  else setImmediate(listenAgain, signal).unref();
}

/** Adds the handler again, because the program continues after the signal. `install` may have added it since. */
function listenAgain(signal: NodeJS.Signals): void {
  if (flushes.size > 0 && !process.listeners(signal).includes(onSignal)) process.prependListener(signal, onSignal);
}
