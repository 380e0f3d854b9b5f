// Which rows of a long list are on screen.

/** The position of each row, and last the height of all. */
export function positions(heights) {
  const at = new Float64Array(heights.length + 1);
  for (let i = 0; i < heights.length; i++) at[i + 1] = at[i] + heights[i];
  return at;
}

/** The rows from first to before last that overlap the view, with some more above and below. */
export function visible(at, top, height, more = 6) {
  const count = at.length - 1;
  const first = Math.max(0, rowAt(at, top) - more);
  const last = Math.min(count, rowAt(at, top + height) + 1 + more);
  return [first, Math.max(first, last)];
}

function rowAt(at, y) {
  let low = 0, high = at.length - 2;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (at[middle] <= y) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Where to scroll so that the row is wholly in view. */
export function reveal(at, row, top, height) {
  if (at[row] < top) return at[row];
  if (at[row + 1] > top + height) return at[row + 1] - height;
  return top;
}
