import assert from "node:assert/strict";
import { test } from "node:test";
import { channel, outcome, read, resize, stdin } from "./exec_frames.js";

const text = (s) => new TextEncoder().encode(s);

test("frames begin with their channel", () => {
  assert.deepEqual([...stdin("é")], [0, 0xc3, 0xa9]);
  const { channel: number, data } = read(resize(80, 24).buffer);
  assert.equal(number, channel.resize);
  assert.equal(new TextDecoder().decode(data), '{"Width":80,"Height":24}');
});

test("outcome", () => {
  for (const [status, want] of [
    ['{"status":"Success"}', "the program has ended"],
    ['{"status":"Failure","message":"exit 3","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}', "the program has ended with code 3"],
    ['{"status":"Failure","message":"container app is not running"}', "container app is not running"],
    ["", "ended without a status"],
    ["{}", "ended without a status"],
  ]) {
    assert.equal(outcome(text(status)), want, status);
  }
});
