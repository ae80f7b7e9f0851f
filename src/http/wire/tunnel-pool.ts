import { type Dispatcher, errors, Pool } from "undici";
import { isFailedTunnel, outcomeOfError } from "../../core/breaker/classify.ts";

type OnTunnel = (error: Error | null, tunnel: Dispatcher.ConnectData) => void;

/**
 * The connections to a proxy that opens tunnels (CONNECT). undici's own would wait five minutes for the answer of the
 * proxy, and reports a refusal as an abort of the caller, which is no failure of a host and is never retried.
 */
export class TunnelPool extends Pool {
  readonly #timeoutMs: number;

  /** @param timeoutMs bounds the time until the proxy has answered; 0 for no limit */
  constructor(origin: URL, options: Pool.Options, timeoutMs: number) {
    super(origin, { ...options, headersTimeout: timeoutMs });
    this.#timeoutMs = timeoutMs;
  }

  override connect(options: Dispatcher.ConnectOptions): Promise<Dispatcher.ConnectData>;
  override connect(options: Dispatcher.ConnectOptions, callback: OnTunnel): void;
  override connect(
    options: Dispatcher.ConnectOptions,
    callback?: OnTunnel,
  ): Promise<Dispatcher.ConnectData> | undefined {
    if (callback === undefined) return this.#open(options);
    super.connect(options, callback);
    return undefined;
  }

  async #open(options: Dispatcher.ConnectOptions): Promise<Dispatcher.ConnectData> {
    let tunnel: Dispatcher.ConnectData;
    try {
      tunnel = await super.connect(options);
    } catch (error) {
      throw this.#unopened(options.path, error);
    }
    const { statusCode, socket } = tunnel;
    if (statusCode === 200) return tunnel;
    socket.on("error", () => undefined).destroy();
    const answer = `with status ${statusCode}`;
    if (isFailedTunnel(statusCode)) throw proxyError(`${unopened(options.path)}: it answered ${answer}`);
    throw new errors.InvalidArgumentError(`the proxy refused a connection to ${options.path} ${answer}`);
  }

  #unopened(path: string, error: unknown): unknown {
    if (error instanceof errors.HeadersTimeoutError)
      return new errors.ConnectTimeoutError(`${unopened(path)} within ${this.#timeoutMs} ms`);
    const outcome = outcomeOfError(error);
    return outcome.kind === "failure" && !outcome.unreached ? proxyError(unopened(path), error) : error;
  }
}

function unopened(path: string): string {
  return `the proxy did not open a connection to ${path}`;
}

/** With the code of undici's own error, which is not public. */
function proxyError(message: string, cause?: unknown): Error {
  return Object.assign(new Error(message, cause === undefined ? {} : { cause }), { code: "UND_ERR_PRX_CONN" });
}
