import type { DatabaseFormat } from "../../stores/sqlite/database-file.ts";

/**
 * Heads and bodies are in separate tables, so that reading or updating a head does not touch its body. Ids are never
 * reused (AUTOINCREMENT), so that a late read of a body gets the right one or none. Triggers keep the totals, because
 * counting would read every entry.
 */
const SCHEMA = `
  CREATE TABLE responses (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    url TEXT NOT NULL,
    variant TEXT NOT NULL,
    head TEXT NOT NULL,
    status INTEGER NOT NULL,
    requested_ms INTEGER NOT NULL,
    received_ms INTEGER NOT NULL,
    body_bytes INTEGER NOT NULL,
    body_crc INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    used_ms INTEGER NOT NULL,
    UNIQUE (url, variant)
  );
  CREATE INDEX responses_by_use ON responses (used_ms, id);
  CREATE TABLE bodies (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
  CREATE TABLE totals (entries INTEGER NOT NULL, bytes INTEGER NOT NULL);
  INSERT INTO totals VALUES (0, 0);
  CREATE TRIGGER response_came AFTER INSERT ON responses BEGIN
    UPDATE totals SET entries = entries + 1, bytes = bytes + NEW.bytes;
  END;
  CREATE TRIGGER response_changed AFTER UPDATE OF bytes ON responses BEGIN
    UPDATE totals SET bytes = bytes + NEW.bytes - OLD.bytes;
  END;
  CREATE TRIGGER response_went AFTER DELETE ON responses BEGIN
    DELETE FROM bodies WHERE id = OLD.id;
    UPDATE totals SET entries = entries - 1, bytes = bytes - OLD.bytes;
  END;
`;

/** The application id "dtkg" marks the file as a cache of docstokg; shared stores have "dtkb". */
export const CACHE_FORMAT: DatabaseFormat = { applicationId: 0x64_74_6b_67, migrations: [SCHEMA] };
