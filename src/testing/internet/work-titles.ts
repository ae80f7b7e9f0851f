import type { SeededRandom } from "./seeded-random.ts";

const ADJECTIVES = ["Seasonal", "Latent", "Sparse", "Alpine", "Coastal", "Recurrent", "Thermal", "Early"] as const;
const SUBJECTS = ["migration", "diffusion", "pollination", "scattering", "inheritance", "sediment", "folding"] as const;
const PLACES = [
  "of reed warblers",
  "in shallow lakes",
  "on random graphs",
  "in thin films",
  "of yeast proteins",
  "under drought",
] as const;

export function titleOf(random: SeededRandom): string {
  return `${random.pick(ADJECTIVES)} ${random.pick(SUBJECTS)} ${random.pick(PLACES)}: ${random.pick(["a survey", "new data", "a model", "thirty years on"])}`;
}
