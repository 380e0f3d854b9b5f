import assert from "node:assert/strict";
import { test } from "node:test";
import { createStore, findPod } from "./store.js";

test("pods are listed, changed and removed, and subscribers are told once per frame", () => {
  const frames = [];
  const store = createStore((f) => frames.push(f));
  let told = 0;
  store.subscribe(() => told++);
  store.receive("pod", { uid: "early", name: "early" });
  assert.equal(store.state.pods, null);
  store.receive("pods", [{ uid: "a", name: "a" }, { uid: "b", name: "b" }]);
  store.receive("pod", { uid: "c", name: "c" });
  store.receive("gone", { uid: "a" });
  store.receive("constructor", {});
  assert.deepEqual([...store.state.pods.keys()], ["b", "c"]);
  assert.equal(frames.length, 1);
  frames.pop()();
  assert.equal(told, 1);
});

test("of pods with the same name, the newest is found", () => {
  const rows = [
    { uid: "old", namespace: "n", name: "web-0", created: "2026-01-01T00:00:00Z" },
    { uid: "new", namespace: "n", name: "web-0", created: "2026-01-02T00:00:00Z" },
    { uid: "other", namespace: "m", name: "web-0", created: "2026-01-03T00:00:00Z" },
  ];
  const pods = new Map(rows.map((r) => [r.uid, r]));
  assert.equal(findPod(pods, "n", "web-0").uid, "new");
  assert.equal(findPod(pods, "n", "web-1"), null);
  assert.equal(findPod(null, "n", "web-0"), null);
});
