import { createCipheriv, createHash } from "node:crypto";

export interface PdfText {
  readonly title: string;
  readonly lines: readonly string[];
}

/**
 * A valid PDF with one page and exactly `bytes` bytes, unless its text needs more. A stream of incompressible bytes
 * that no page shows fills the rest, as figures do in a real article.
 */
export function makePdf(seed: string, { title, lines }: PdfText, bytes: number): Buffer {
  const page = [
    "BT /F1 16 Tf 60 770 Td",
    `(${escaped(title)}) Tj`,
    "/F1 11 Tf",
    ...lines.flatMap(line => ["0 -22 Td", `(${escaped(line)}) Tj`]),
    "ET",
  ].join("\n");
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
    `<< /Length ${page.length} >>\nstream\n${page}\nendstream`,
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    `<< /Title (${escaped(title)}) >>`,
  ];
  const bare = assemble(objects, Buffer.alloc(0));
  return assemble(objects, noise(seed, Math.max(0, bytes - bare.length)));
}

/** Incompressible bytes from the key stream of a cipher, which is fast: a megabyte in a millisecond. */
function noise(seed: string, length: number): Buffer {
  const key = createHash("md5").update(seed).digest();
  return createCipheriv("aes-128-ctr", key, Buffer.alloc(16)).update(Buffer.alloc(length));
}

function assemble(objects: readonly string[], filling: Buffer): Buffer {
  // The PDF standard recommends a comment with bytes above 127, which marks the file as binary.
  const pieces: Buffer[] = [Buffer.from("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "latin1")];
  let length = pieces[0]?.length ?? 0;
  const offsets: number[] = [];
  const add = (piece: Buffer) => {
    pieces.push(piece);
    length += piece.length;
  };
  for (const [index, object] of objects.entries()) {
    offsets.push(length);
    add(Buffer.from(`${index + 1} 0 obj\n${object}\nendobj\n`, "latin1"));
  }
  offsets.push(length);
  add(Buffer.from(`${objects.length + 1} 0 obj\n<< /Length ${padded(filling.length)} >>\nstream\n`, "latin1"));
  add(filling);
  add(Buffer.from("\nendstream\nendobj\n", "latin1"));
  const startsAt = length;
  const count = offsets.length + 1;
  const table = offsets.map(offset => `${padded(offset)} 00000 n \n`).join("");
  add(Buffer.from(`xref\n0 ${count}\n0000000000 65535 f \n${table}`, "latin1"));
  add(
    Buffer.from(
      `trailer\n<< /Size ${count} /Root 1 0 R /Info 6 0 R >>\nstartxref\n${padded(startsAt)}\n%%EOF\n`,
      "latin1",
    ),
  );
  return Buffer.concat(pieces);
}

/** Always ten digits, so that the length of the file depends only on the length of the filling. */
function padded(number: number): string {
  return String(number).padStart(10, "0");
}

function escaped(text: string): string {
  return text.replace(/[\\()]/g, character => `\\${character}`);
}
