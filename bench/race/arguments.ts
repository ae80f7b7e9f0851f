import { parseArgs } from "node:util";
import { CLIENTS, type ClientSpec, clientSpecOf } from "./client-spec.ts";
import type { Scenario } from "./scenario.ts";
import { scenarios } from "./scenarios.ts";

export class UsageError extends Error {}

export interface RaceArguments {
  readonly isQuick: boolean;
  /** Runs nothing: writes the document from the stored results. */
  readonly isRenderOnly: boolean;
  readonly scenarios: readonly Scenario[];
  /** Undefined for all clients. */
  readonly clients: readonly ClientSpec[] | undefined;
  readonly seed: string;
}

export function readArguments(args: readonly string[]): RaceArguments {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        quick: { type: "boolean", default: false },
        render: { type: "boolean", default: false },
        only: { type: "string" },
        clients: { type: "string" },
        seed: { type: "string", default: "2026" },
      },
    });
    const all = scenarios(values.quick);
    return {
      isQuick: values.quick,
      isRenderOnly: values.render,
      scenarios: values.only === undefined ? all : listed(values.only).flatMap(name => scenariosNamed(name, all)),
      clients: values.clients === undefined ? undefined : listed(values.clients).map(clientSpecOf),
      seed: values.seed,
    };
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/** `R5` selects all its variants, `r5-retry-after` one. */
function scenariosNamed(name: string, all: readonly Scenario[]): readonly Scenario[] {
  const named = all.filter(({ id, race }) => [id, race.toLowerCase()].includes(name.toLowerCase()));
  if (named.length > 0) return named;
  const valid = [...new Set(all.flatMap(({ race, id }) => [race, id]))];
  throw new RangeError(`unknown scenario ${JSON.stringify(name)}; expected ${valid.join(", ")}`);
}

/** The clients of a scenario, docstokg first. */
export function clientsFor(
  { clients, isQuick }: RaceArguments,
  { hasSmooth = false }: Scenario,
): readonly ClientSpec[] {
  if (clients !== undefined) return clients;
  return CLIENTS.filter(one => (hasSmooth || !one.isExtra) && (one.isQuick || !isQuick));
}

function listed(text: string): readonly string[] {
  return text.split(",").map(name => name.trim());
}
