import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const css = readFileSync(new URL("base.css", import.meta.url), "utf8");
const colors = Object.fromEntries([...css.matchAll(/--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)/g)].map(([, name, light, dark]) => [name, { light, dark }]));

function luminance(hex) {
  const [r, g, b] = [1, 3, 5].map((i) => {
    const c = parseInt(hex.slice(i, i + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a, b) {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
}

const backgrounds = ["bg", "surface", "raised", "selected"];
const pairs = [
  ...["text", "muted", "accent"].flatMap((c) => backgrounds.map((b) => [c, b])),
  ...["ok", "warn", "bad", "wait"].flatMap((c) => backgrounds.slice(0, 3).map((b) => [c, b])),
  ...["ok", "bad", "wait"].flatMap((c) => [[c, `${c}-bg`], ["text", `${c}-bg`], ["muted", `${c}-bg`]]),
  ["on-accent", "accent"], ["code-text", "code-bg"], ["accent", "code-bg"],
  // Black on dark, and white on light, are what a program has asked for.
  ...Array.from({ length: 15 }, (_, i) => [`ansi-${i + 1}`, "code-bg"]),
];

for (const scheme of ["light", "dark"]) {
  test(`text has the contrast of WCAG AA, ${scheme}`, () => {
    for (const [text, background] of pairs) {
      const ratio = contrast(colors[text][scheme], colors[background][scheme]);
      assert.ok(ratio >= 4.5, `${text} on ${background}: ${ratio.toFixed(2)}`);
    }
  });
  test(`graphics have a contrast of 3, ${scheme}`, () => {
    for (const name of ["plot-1", "plot-2", "plot-3", "plot-4", "accent", "line-strong"]) {
      const ratio = contrast(colors[name][scheme], colors.surface[scheme]);
      assert.ok(ratio >= 3, `${name}: ${ratio.toFixed(2)}`);
    }
  });
}
