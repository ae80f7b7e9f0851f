/** The response to every request: a record like those of scholarly services, fresh for an hour. */
export const BODY: Buffer = Buffer.from(
  JSON.stringify({
    id: "https://openalex.example.org/W2741809807",
    doi: "10.7717/peerj.4375",
    title: "The state of OA: a large-scale analysis of the prevalence and impact of Open Access articles",
    year: 2018,
    authors: Array.from({ length: 8 }, (_, index) => ({
      name: `Author Number ${index}`,
      orcid: `0000-0001-6187-661${index}`,
    })),
  }),
);

/** Without `Date`, which the server adds. */
export const FIELDS = {
  "content-type": "application/json",
  "content-length": String(BODY.length),
  "cache-control": "max-age=3600",
} as const;
