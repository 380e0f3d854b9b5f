import assert from "node:assert/strict";
import { test } from "node:test";
import { timeline } from "./timeline.js";

const start = Date.parse("2026-11-19T12:00:00Z");
const at = (ms) => new Date(start + ms).toISOString();
const step = (kind, since, began, ended, state = "done") => ({ kind, state, since: at(since), began: at(began), ended: ended == null ? undefined : at(ended) });

test("a start is one axis with round ticks", () => {
  const [group, ...others] = timeline([step("start", 900, 900, 950), step("sandbox", 0, 0, 800), step("image", 10, 500, 890)], start + 60_000);
  assert.equal(others.length, 0);
  assert.deepEqual(group.bars.map((b) => b.step.kind), ["sandbox", "image", "start"]);
  assert.equal(group.length, 1000);
  assert.deepEqual(group.ticks.map((t) => t.ms), [0, 500, 1000]);
  const image = group.bars[1];
  assert.deepEqual([image.left, image.lastLeft, image.right], [1, 50, 89]);
});

test("a step that runs extends the axis to now", () => {
  const [group] = timeline([step("sandbox", 0, 0, 800), step("image", 10, 10, null, "running")], start + 7000);
  assert.equal(group.length, 8000);
  assert.equal(group.bars[1].right, 87.5);
});

test("what happens long after the start has an axis of its own", () => {
  const steps = [step("sandbox", 0, 0, 800), step("readiness probe", 900, 20_000, 20_005), step("liveness probe", 3_600_000, 3_600_000, 3_601_000, "failed")];
  const groups = timeline(steps, start + 4_000_000);
  assert.deepEqual(groups.map((g) => g.bars.length), [2, 1]);
  assert.equal(groups[1].begin, start + 3_600_000);
});

test("steps that take no time, and none at all", () => {
  assert.equal(timeline([step("admission", 0, 0, 0)], start)[0].length > 0, true);
  assert.deepEqual(timeline([], start), []);
});
