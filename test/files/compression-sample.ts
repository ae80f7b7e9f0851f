/** The text that is packed in test/fixtures/compression: lines that repeat near and far, and single bytes in long runs. */
export function sampleText(): Buffer {
  const lines: string[] = [];
  let seed = 1;
  const next = (below: number) => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % below;
  };
  for (let line = 0; line < 3000; line += 1) {
    lines.push(`[Term]\nid: X:${String(line).padStart(7, "0")}\nname: term ${next(50)} of ${next(9)}\n`);
    if (line % 500 === 0) lines.push(`${"=".repeat(1 + next(3000))}\n`);
  }
  return Buffer.from(lines.join(""));
}
