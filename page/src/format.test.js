import assert from "node:assert/strict";
import { test } from "node:test";
import { age, bytes, cpu, duration, millis, ordinal, percent } from "./format.js";

function table(f, cases) {
  return () => {
    for (const [input, want] of cases) assert.equal(f(input), want, String(input));
  };
}

test("cpu", table(cpu, [[null, "–"], [0, "0"], [0.0004, "<1m"], [0.0304, "30m"], [0.25, "250m"], [1, "1"], [1.256, "1.26"], [12.34, "12.3"]]));
test("bytes", table(bytes, [[null, "–"], [0, "0 B"], [512, "512 B"], [1023, "1 KiB"], [1536, "1.5 KiB"], [35_651_584, "34 MiB"], [2 ** 40, "1 TiB"]]));
test("percent", table(percent, [[undefined, "–"], [0.04, "0 %"], [3.14, "3.1 %"], [42.4, "42 %"]]));
test("age", table(age, [[null, "–"], [-3, "0s"], [45, "45s"], [119, "119s"], [200, "3m20s"], [240, "4m"], [3600, "60m"], [18_000, "5h"], [18_060, "5h1m"], [100_000, "27h"], [187_200, "2d4h"], [864_000, "10d"]]));
test("duration", table(duration, [[0, "<1 ms"], [82.4, "82 ms"], [1240, "1.2 s"], [42_300, "42 s"], [240_000, "4m"]]));
test("ordinal", table(ordinal, [[1, "1st"], [2, "2nd"], [3, "3rd"], [4, "4th"], [11, "11th"], [112, "112th"], [21, "21st"]]));
test("millis knows no zero time", table(millis, [["", null], [undefined, null], ["0001-01-01T00:00:00Z", null], ["1970-01-01T00:00:01Z", 1000], [5, 5]]));
