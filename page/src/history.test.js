import assert from "node:assert/strict";
import { test } from "node:test";
import { append, appendContainers, trim } from "./history.js";

test("append keeps the newest points", () => {
  const history = { t: [10, 20], cpu: [1, null] };
  assert.deepEqual(append(history, { t: 30, cpu: 0, memory: 5 }, 2), { t: [20, 30], cpu: [null, 0] });
  assert.deepEqual(append(history, { t: 20, cpu: 9 }, 2), history);
  assert.deepEqual(append({ t: [], cpu: [] }, { t: 1 }, 2), { t: [1], cpu: [null] });
});

test("appendContainers fills what is unknown", () => {
  const history = { t: [10, 20], containers: { old: { cpu: [1, 2], memory: [3, 4] } } };
  assert.deepEqual(appendContainers(history, { t: 30, containers: { new: { cpu: 5, memory: 6 } } }, 3), {
    t: [10, 20, 30],
    containers: { old: { cpu: [1, 2, null], memory: [3, 4, null] }, new: { cpu: [null, null, 5], memory: [null, null, 6] } },
  });
  assert.equal(appendContainers(history, { t: 20, containers: {} }, 3), history);
});

test("older points move with the node's clock", () => {
  for (const step of [3600, -3600, -20]) {
    const t = 30 + step;
    assert.deepEqual(append({ t: [10, 20], cpu: [1, 2] }, { t, cpu: 3 }, 3), { t: [t - 20, t - 10, t], cpu: [1, 2, 3] });
    const containers = appendContainers({ t: [10, 20], containers: { a: { cpu: [1, 2], memory: [3, 4] } } }, { t, containers: {} }, 3);
    assert.deepEqual(containers.t, [t - 20, t - 10, t]);
  }
});

test("trim drops what is before the first known value", () => {
  assert.deepEqual(trim({ t: [1, 2, 3, 4], cpu: [null, null, null, 5], rx: [null, 0, null, 6] }), { t: [2, 3, 4], cpu: [null, null, 5], rx: [0, null, 6] });
  assert.deepEqual(trim({ t: [1, 2], cpu: [null, null] }), { t: [], cpu: [] });
});
