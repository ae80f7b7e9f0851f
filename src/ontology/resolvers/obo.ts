import { formatOfName } from "../format.ts";
import { listAt, readJson, textAt, valueAt, webUrlWithoutCredentials } from "../registry-json.ts";
import { chooseOffer, found, JSON_ONLY, type OntologyResolver, refused, type Source } from "../resolver.ts";

const REGISTRY = "https://obofoundry.org/registry/ontologies.jsonld";
const PURL = "http://purl.obolibrary.org/obo/";
/** Parts of a path that lead to another folder, or to none. */
const DROPPED_PARTS: ReadonlySet<string> = new Set(["", ".", ".."]);

/** The OBO Foundry: its registry lists ontologies and products, and its permanent URLs redirect to the files. */
export const obo: OntologyResolver = {
  name: "obo",
  service: "obo",
  extras: { product: "name of a product of the ontology, such as hp-base.owl" },
  requires: [],
  requestFor: () => ({ url: REGISTRY, accept: `application/ld+json, ${JSON_ONLY}` }),
  read(source, response) {
    const { id, targetFormats, extras } = source;
    const registry = readJson("the OBO registry", response);
    // The permanent URLs work without the registry; only licence and status are missing then.
    if (!("value" in registry)) return byPurl(source, "the OBO registry could not be read; licence unknown");
    const entry = listAt(registry.value, "ontologies").find(
      candidate => textAt(candidate, "id")?.toLowerCase() === id.toLowerCase(),
    );
    if (entry === undefined) return refused("unknown", `unknown ontology ${id} in the OBO registry`);
    if (valueAt(entry, "is_obsolete") === true) {
      const replacement = textAt(entry, "replaced_by");
      return refused("obsolete", `${id} is obsolete${replacement === undefined ? "" : `, replaced by ${replacement}`}`);
    }
    const offers = listAt(entry, "products").flatMap(product => {
      const name = textAt(product, "id");
      const url = webUrlWithoutCredentials(valueAt(product, "ontology_purl"));
      return name === undefined || url === undefined ? [] : [{ name, url, format: formatOfName(name) }];
    });
    const { product } = extras;
    const main = offers.filter(({ name }) => name.toLowerCase().startsWith(`${id.toLowerCase()}.`));
    const wanted = product === undefined ? main : offers.filter(({ name }) => name === product);
    const offer = chooseOffer(wanted, product === undefined ? targetFormats : []);
    if (offer === undefined) {
      const names = offers.map(({ name }) => name).join(", ") || "(none)";
      if (product !== undefined) return refused("no-file", `${id} has no product ${product}; available: ${names}`);
      return refused(
        "no-format",
        `${id} is not available as ${targetFormats.join(", ") || "a file"}; available: ${names}`,
      );
    }
    const status = textAt(entry, "activity_status");
    return found({
      url: source.version === undefined ? offer.url : releaseUrl(source.id, source.version, offer.url),
      format: offer.format,
      licence: textAt(entry, "license", "label") ?? textAt(entry, "license", "url"),
      notes: status === undefined || status === "active" ? [] : [`status in the OBO registry: ${status}`],
    });
  },
};

function byPurl({ id, targetFormats, extras, version }: Source, note: string) {
  const [format = "owl"] = targetFormats;
  const name = extras["product"] ?? `${id.toLowerCase()}.${format}`;
  const parts = name.split("/");
  if (parts.some(part => DROPPED_PARTS.has(part)))
    return refused("no-file", `${id} has no product ${name}: it is no path below ${PURL}`);
  const url = `${PURL}${parts.map(encodeURIComponent).join("/")}`;
  return found({
    url: version === undefined ? url : releaseUrl(id, version, url),
    format: formatOfName(name),
    notes: [note],
  });
}

/**
 * The permanent URL of one release: `obo/hp/releases/2025-01-16/hp.owl`. The folders of a product below that of its
 * ontology are kept: `obo/go/releases/2025-02-06/extensions/go-plus.owl`.
 */
function releaseUrl(id: string, version: string, url: string): string {
  const ontology = id.toLowerCase();
  const { pathname } = new URL(url);
  const folder = `/obo/${ontology}/`;
  const name = pathname.startsWith(folder) ? pathname.slice(folder.length) : pathname.split("/").at(-1);
  return `${PURL}${ontology}/releases/${encodeURIComponent(version)}/${name}`;
}
