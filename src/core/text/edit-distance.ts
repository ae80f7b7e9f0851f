/** The number of letters to change, remove, add, or swap with their neighbour, to make one text from the other. */
export function editDistance(from: string, to: string): number {
  let twoAbove: readonly number[] = [];
  let above = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row += 1) {
    const line = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const change = (above[column - 1] ?? 0) + (from[row - 1] === to[column - 1] ? 0 : 1);
      const isSwap = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      const swap = isSwap && row > 1 && column > 1 ? (twoAbove[column - 2] ?? 0) + 1 : change;
      line.push(Math.min(change, swap, (above[column] ?? 0) + 1, (line[column - 1] ?? 0) + 1));
    }
    twoAbove = above;
    above = line;
  }
  return above[to.length] ?? 0;
}
