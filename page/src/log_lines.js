// Lines from a stream of bytes.

/** Longer lines are cut in parts, as nothing bounds what a program writes. */
const longest = 16_384;

/** Returns a function that gets chunks of bytes and returns the lines that are complete. */
export function createSplitter() {
  const decoder = new TextDecoder();
  let rest = "";
  return function split(chunk) {
    rest += chunk ? decoder.decode(chunk, { stream: true }) : decoder.decode();
    const lines = rest.split("\n");
    rest = lines.pop();
    if (!chunk && rest) {
      lines.push(rest);
      rest = "";
    }
    while (rest.length > longest) {
      lines.push(rest.slice(0, longest));
      rest = rest.slice(longest);
    }
    return lines.flatMap(cut);
  };
}

function cut(line) {
  if (line.length <= longest) return [line];
  const parts = [];
  for (let i = 0; i < line.length; i += longest) parts.push(line.slice(i, i + longest));
  return parts;
}

/** Separates the time that the kubelet puts before a line. */
export function timed(line) {
  const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)) /.exec(line);
  return match ? [match[1], line.slice(match[0].length)] : ["", line];
}
