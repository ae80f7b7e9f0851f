import { ConfigError } from "../../errors.ts";

/** The package, as it is loaded. */
export type OpenTelemetry = typeof import("@opentelemetry/api");

/** Loads `@opentelemetry/api`, an optional package. Rejects with a ConfigError that names the sink if it is missing. */
export async function loadOpenTelemetry(sink: string): Promise<OpenTelemetry> {
  try {
    return await import("@opentelemetry/api");
  } catch (cause) {
    const message = "needs the package @opentelemetry/api: npm install @opentelemetry/api";
    throw new ConfigError([{ where: sink, path: "", message }], { cause });
  }
}
