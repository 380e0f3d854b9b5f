import assert from "node:assert/strict";
import { test } from "node:test";
import { compare, matches } from "./pod_order.js";
import { toneOf } from "./tone.js";

const row = (name, more) => ({ name, namespace: "default", phase: "Running", up: true, ready: "1/1", restarts: 0, ip: "10.0.0.1", sentence: "", containers: ["app"], ...more });
const rows = [
  row("web-10", { cpu: 0.2, ip: "10.0.0.10", created: "2026-01-01T00:00:00Z" }),
  row("web-9", { cpu: null, ip: "10.0.0.9", created: "2026-01-02T00:00:00Z" }),
  row("job", { phase: "Completed", up: false, ready: "0/1", cpu: 0.1, ip: "" }),
  row("db", { phase: "ImagePullBackOff", up: false, ready: "0/1", sentence: "image docker.io/x:1 does not exist" }),
  row("new", { phase: "Init:0/1", up: false, ready: "0/1", restarts: 3 }),
];

test("compare", () => {
  for (const [by, descending, want] of [
    ["status", false, "db new web-9 web-10 job"],
    ["name", false, "db job new web-9 web-10"],
    ["name", true, "web-10 web-9 new job db"],
    ["cpu", true, "web-10 job db new web-9"],
    ["restarts", true, "new db job web-9 web-10"],
  ]) {
    assert.equal([...rows].sort(compare({ by, descending })).map((r) => r.name).join(" "), want, by);
  }
  assert.deepEqual(rows.slice(0, 2).sort(compare({ by: "ip" })).map((r) => r.ip), ["10.0.0.9", "10.0.0.10"]);
  assert.deepEqual(rows.slice(0, 2).sort(compare({ by: "age" })).map((r) => r.name), ["web-9", "web-10"]);
});

test("matches", () => {
  for (const [search, want] of [["", 5], ["WEB", 2], ["docker.io exist", 1], ["default web-9", 1], ["10.0.0.9", 1], ["imagepull", 1], ["nothing", 0]]) {
    assert.equal(rows.filter((r) => matches(r, search)).length, want, search);
  }
});

test("toneOf", () => {
  for (const [phase, up, want] of [
    ["Running", true, "ok"], ["Running", false, "wait"], ["Completed", false, "done"], ["Init:1/2", false, "wait"], ["ContainerCreating", false, "wait"],
    ["Init:CrashLoopBackOff", false, "bad"], ["Evicted", false, "bad"], ["Terminating", false, "wait"],
  ]) {
    assert.equal(toneOf({ phase, up }), want, phase);
  }
});
