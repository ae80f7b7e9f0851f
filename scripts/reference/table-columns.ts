/** What the columns of the SQLite files mean. The generator fails when a table has another set of columns. */

const MACHINE_TIME = {
  boot: "id of the start of the machine",
  machine_us: "time since that start when the row was written, in microseconds",
  wall_ms: "wall clock of the same moment, in epoch milliseconds",
} as const;

type Columns = Readonly<Record<string, string>>;
export interface TableDescription {
  readonly about: string;
  readonly columns: Columns;
}

export const STORE_TABLES: Readonly<Record<string, TableDescription>> = {
  budgets: {
    about: "One row for each limit that processes share: a role of a host, a total, or a service.",
    columns: {
      key: "host or service, and role",
      state: "counts, limits, the queue and the list of leases, as JSON",
      stamps: "when the units of the windows were written, in a compact form",
      ...MACHINE_TIME,
    },
  },
  budget_entries: {
    about: "The processes that use a shared limit, those that wait for it, and when their leases end.",
    columns: {
      key: "as in `budgets`",
      kind: "`member`, `turn` or `lease`",
      id: "id of the process, or number of the turn or lease",
      value: "the entry, as JSON",
    },
  },
  processes: {
    about: "The processes that use the file. A row expires 30 s after its last update.",
    columns: {
      name: "id of the process in the store",
      pid: "process id",
      boot: MACHINE_TIME.boot,
      seen_us: "last update, in microseconds since that start",
      seen_ms: "the same in epoch milliseconds",
    },
  },
  records: {
    about:
      "What processes know about hosts and resolvers, orders of operators, shared slots, and the status of processes.",
    columns: {
      name: "kind and name, such as `host api.example.org`",
      record: "the record, as JSON",
      keep_until_us: "when the row may be deleted, in microseconds since the start of the machine",
      keep_until_ms: "the same in epoch milliseconds",
      ...MACHINE_TIME,
    },
  },
  breaker_cooldowns: {
    about: "For other tools, read-only: which hosts are in cooldown. Rows are deleted a second after their end.",
    columns: {
      host: "host or service",
      until_wall: "end of the cooldown, in epoch seconds",
      reason: "`failures`, `retry-after`, `rolling-window`, `slow-calls` or `cli-open:<text>`",
      updated_at: "when the row was written, in epoch seconds",
    },
  },
};

export const CACHE_TABLES: Readonly<Record<string, TableDescription>> = {
  responses: {
    about: "The heads of stored responses.",
    columns: {
      id: "id, never used again",
      url: "URL of the request, without the fields that the hub adds; with the role or partition where they matter",
      variant: "the request fields that `Vary` names",
      head: "status, headers and freshness, as JSON",
      status: "HTTP status",
      requested_ms: "when the request was sent, in epoch milliseconds",
      received_ms: "when the head arrived, in epoch milliseconds",
      body_bytes: "length of the body",
      body_crc: "checksum of the body",
      bytes: "size of the entry, as counted toward the limit of the cache",
      used_ms: "last use, in epoch milliseconds: the entry that was unused for longest is evicted first",
    },
  },
  bodies: { about: "Their bodies.", columns: { id: "id of the response", body: "the bytes" } },
  totals: {
    about: "One row with the size of the cache, kept by triggers.",
    columns: { entries: "number of responses", bytes: "sum of `responses.bytes`" },
  },
};

const URL_HASH = "hash of the URL";
export const MANIFEST_TABLES: Readonly<Record<string, TableDescription>> = {
  runs: {
    about: "One row for each run.",
    columns: {
      id: "number of the run",
      command: "command line, without secrets",
      flags: "the flags with which `docstokg retry` continues the run, as JSON; null for a run of `docstokg/harvest`",
      started_ms: "begin, in epoch milliseconds",
      ended_ms: "end; null while it runs",
      state: "`running`, `ended` or `interrupted`",
    },
  },
  works: {
    about: "One row for each work.",
    columns: {
      id: "number of the work",
      key: "its identifier in canonical form, such as `doi:10.1234/abc`",
      ids: "all its identifiers, as JSON",
      title: "title, if a service returned one",
      year: "year of publication",
      run: "run that listed it, or took it up again",
      state: "`pending`, `done` or `failed`",
      reason: "[result code](../guides/run.md#reasons); null while pending",
      message: "details of the reason",
      sha256: "hash of its file",
      url: "where the file came from, without secrets",
      resolver: "resolver that found it",
      licence: "licence of the copy",
      version: "`published`, `accepted` or `submitted`",
      added_ms: "when it was listed, in epoch milliseconds",
      ended_ms: "when it was settled",
      metadata: "title, authors, year, venue and more, each with its service, as JSON",
      queue: "host and role that its next step needs",
      not_before_ms: "when that step may start, in epoch milliseconds",
      taken_by: "run that has it in memory",
      progress: "what the search for a copy has done so far, as text",
      merged_into: "work that stands for this one",
      inherited: "the progress of works that were merged into this one, as JSON",
    },
  },
  attempts: {
    about: "One row for each query of a resolver, robots.txt check and download.",
    columns: {
      id: "number of the attempt",
      work: "work",
      run: "run",
      step: "`ask` (a resolver), `robots` or `fetch` (a download)",
      resolver: "resolver",
      url: "URL, without secrets",
      status: "HTTP status; null without a response",
      reason: "[result code](../guides/run.md#reasons)",
      message: "details",
      bytes: "bytes received",
      sha256: "hash of a downloaded file",
      elapsed_ms: "duration, in milliseconds",
      ended_ms: "end, in epoch milliseconds",
    },
  },
  files: {
    about: "One row for each stored file. Several works may use one file.",
    columns: {
      sha256: "hash of its bytes",
      path: "path in the output folder",
      bytes: "length",
      media_type: "media type, by its content",
      added_ms: "when it was stored, in epoch milliseconds",
      flag: "`no-eof` for a PDF that lacks only its end mark",
    },
  },
  sources: {
    about: "Which URL gave which file, for conditional requests.",
    columns: {
      place: URL_HASH,
      sha256: "hash of the file",
      etag: "ETag of the response",
      last_modified: "Last-Modified of the response",
      run: "run that last confirmed it",
    },
  },
  parts: {
    about: "Partial files in `.parts`, to be resumed.",
    columns: {
      place: URL_HASH,
      work: "work",
      file: "name of the partial file",
      etag: "validator, for a range request",
      shelving: "if the file is complete: its path and what else to record when it is moved there, as JSON",
      total_bytes: "announced length",
    },
  },
  work_ids: {
    about: "All identifiers of all works, to find a work by any of them.",
    columns: { id: "identifier, such as `pmid:12345678`", work: "work" },
  },
  robots: {
    about: "The robots.txt of each origin, used for a day.",
    columns: {
      origin: "scheme, host and port",
      status: "status of the response, after redirects",
      text: "beginning of the file; empty unless the status is 2xx",
      read_ms: "when it was requested",
    },
  },
  work_files: {
    about: "Which work uses which file.",
    columns: {
      work: "work",
      role: "`article`, or what else the file is",
      sha256: "hash of the file",
      url: "where it came from, without secrets",
      resolver: "resolver that found it",
    },
  },
};
