import assert from "node:assert/strict";
import { test } from "node:test";
import { createParser } from "./ansi.js";

function brief(parts) {
  return parts.map(({ text, style }) => [text, Object.fromEntries(Object.entries(style).filter(([, v]) => v !== false && v !== null))]);
}

for (const [name, line, want] of [
  ["plain text", "hello", [["hello", {}]]],
  ["colours and reset", "\x1b[31mred\x1b[0m no", [["red", { fg: 1 }], [" no", {}]]],
  ["several codes", "\x1b[1;92;44mx\x1b[22;39my", [["x", { bold: true, fg: 10, bg: 4 }], ["y", { bg: 4 }]]],
  ["256 colours", "\x1b[38;5;196ma\x1b[48;5;3mb\x1b[38;5;244mc", [["a", { fg: "rgb(255 0 0)" }], ["b", { fg: "rgb(255 0 0)", bg: 3 }], ["c", { fg: "rgb(128 128 128)", bg: 3 }]]],
  ["24 bits", "\x1b[38;2;1;2;999mx", [["x", { fg: "rgb(1 2 255)" }]]],
  ["other sequences are dropped", "a\x1b[2Kb\x1b]0;title\x07c\x1b[?25ld\x07", [["a", {}], ["b", {}], ["c", {}], ["d", {}]]],
  ["a sequence that is cut", "a\x1b[31", [["a", {}], ["31", {}]]],
  ["the last text of a progress bar", "10%\r\x1b[32m50%\r100%\r", [["100%", { fg: 2 }]]],
  ["markup is text", "<b>&amp;</b>", [["<b>&amp;</b>", {}]]],
]) {
  test(name, () => assert.deepEqual(brief(createParser()(line)), want));
}

test("the style carries over to the next line", () => {
  const parse = createParser();
  parse("\x1b[33mbegins");
  assert.deepEqual(brief(parse("goes on\x1b[m, ends")), [["goes on", { fg: 3 }], [", ends", {}]]);
});
