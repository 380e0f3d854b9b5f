import assert from "node:assert/strict";
import { test } from "node:test";
import { positions, reveal, visible } from "./virtual.js";

const at = positions([40, 40, 60, 40, 40]); // 0 40 80 140 180 220

test("positions add up", () => assert.deepEqual([...at], [0, 40, 80, 140, 180, 220]));

test("visible", () => {
  for (const [top, height, more, want] of [
    [0, 40, 0, [0, 2]],
    [100, 20, 0, [2, 3]],
    [100, 50, 0, [2, 4]],
    [100, 50, 1, [1, 5]],
    [500, 50, 0, [4, 5]],
    [-20, 30, 0, [0, 1]],
  ]) {
    assert.deepEqual(visible(at, top, height, more), want, `${top} ${height} ${more}`);
  }
  assert.deepEqual(visible(positions([]), 0, 100), [0, 0]);
});

test("reveal", () => {
  assert.equal(reveal(at, 0, 50, 100), 0);
  assert.equal(reveal(at, 4, 50, 100), 120);
  assert.equal(reveal(at, 2, 50, 100), 50);
});
