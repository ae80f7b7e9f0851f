/** A file that looks like a damaged SQLite database of the program with this `application_id`. */
export function damagedDatabase(applicationId: number): Buffer {
  const bytes = Buffer.alloc(8192, 0xa5);
  bytes.write("SQLite format 3\0", "latin1");
  bytes.writeUInt32BE(applicationId, 68);
  return bytes;
}
