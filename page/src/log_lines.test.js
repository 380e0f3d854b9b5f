import assert from "node:assert/strict";
import { test } from "node:test";
import { createSplitter, timed } from "./log_lines.js";

const bytes = (s) => new TextEncoder().encode(s);

test("lines are those of all chunks, also where a character is cut", () => {
  const split = createSplitter();
  const euro = bytes("1€\n2");
  assert.deepEqual(split(euro.subarray(0, 2)), []);
  assert.deepEqual(split(euro.subarray(2)), ["1€"]);
  assert.deepEqual(split(bytes("\n\n3")), ["2", ""]);
  assert.deepEqual(split(null), ["3"]);
  assert.deepEqual(split(null), []);
});

test("long lines are cut", () => {
  const split = createSplitter();
  assert.deepEqual(split(bytes("x".repeat(40_000))).map((l) => l.length), [16_384, 16_384]);
  assert.deepEqual(split(bytes("y".repeat(20_000) + "\n")).map((l) => l.length), [16_384, 20_000 + 40_000 - 3 * 16_384]);
});

test("timed", () => {
  assert.deepEqual(timed("2026-11-19T12:00:00.123456789Z hello"), ["2026-11-19T12:00:00.123456789Z", "hello"]);
  assert.deepEqual(timed("2026-11-19T12:00:00+01:00 "), ["2026-11-19T12:00:00+01:00", ""]);
  assert.deepEqual(timed("no time"), ["", "no time"]);
});
