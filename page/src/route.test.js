import assert from "node:assert/strict";
import { test } from "node:test";
import { parse, podHref } from "./route.js";

test("parse", () => {
  const pod = { view: "pod", namespace: "default", name: "web", tab: "overview", container: null };
  for (const [hash, want] of [
    ["", { view: "pods" }],
    ["#/pods", { view: "pods" }],
    ["#/pods/default", { view: "pods" }],
    ["#/node", { view: "node" }],
    ["#/pods/default/web", pod],
    ["#/pods/default/web/logs?container=app", { ...pod, tab: "logs", container: "app" }],
    ["#/pods/default/web/constructor", pod],
    ["#/pods/default/%E0%A4%A", { ...pod, name: "%E0%A4%A" }],
  ]) {
    assert.deepEqual(parse(hash), want, hash);
  }
});

test("podHref is read back", () => {
  const { namespace, name, tab, container } = parse(podHref("a b", "x/y", "terminal", "c&d"));
  assert.deepEqual([namespace, name, tab, container], ["a b", "x/y", "terminal", "c&d"]);
  assert.equal(podHref("default", "web"), "#/pods/default/web");
});
