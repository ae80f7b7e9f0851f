import { AsyncLocalStorage } from "node:async_hooks";
import { type Context, type ContextManager, ROOT_CONTEXT } from "@opentelemetry/api";

/** The context manager of OpenTelemetry's SDK for Node, in short. */
export class StorageContextManager implements ContextManager {
  readonly #storage = new AsyncLocalStorage<Context>();

  active(): Context {
    return this.#storage.getStore() ?? ROOT_CONTEXT;
  }

  with<Args extends unknown[], Work extends (...args: Args) => ReturnType<Work>>(
    context: Context,
    work: Work,
    self?: ThisParameterType<Work>,
    ...args: Args
  ): ReturnType<Work> {
    return this.#storage.run(context, () => work.apply(self, args));
  }

  bind<Target>(_context: Context, target: Target): Target {
    return target;
  }

  enable(): this {
    return this;
  }

  disable(): this {
    this.#storage.disable();
    return this;
  }
}
