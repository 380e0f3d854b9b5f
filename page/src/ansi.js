// Colours of logs: SGR sequences become styled parts of text, all other control sequences are dropped.

const escape = /\x1b(?:\[([0-?]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_]|\[?)/g;
const control = /[\x00-\x08\x0b-\x1f\x7f]/g;

const plain = { bold: false, dim: false, italic: false, underline: false, inverse: false, fg: null, bg: null };

/** Returns a function that splits a line in parts with a style each. The style carries over to the next line. */
export function createParser() {
  let style = plain;
  return function parse(line) {
    // A progress bar rewrites its line: the last text stands.
    const text = line.replace(/\r+$/, "");
    const from = text.lastIndexOf("\r") + 1;
    const parts = [];
    let at = 0;
    const push = (to) => {
      const part = text.slice(Math.max(at, from), to).replace(control, "");
      if (to > from && part) parts.push({ text: part, style });
    };
    for (const match of text.matchAll(escape)) {
      push(match.index);
      if (match[2] === "m") style = select(style, match[1]);
      at = match.index + match[0].length;
    }
    push(text.length);
    return parts;
  };
}

function select(style, parameters) {
  const codes = parameters.split(/[;:]/).map(Number);
  const next = { ...style };
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i];
    if (code === 0) Object.assign(next, plain);
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.underline = true;
    else if (code === 7) next.inverse = true;
    else if (code === 22) next.bold = next.dim = false;
    else if (code === 23) next.italic = false;
    else if (code === 24) next.underline = false;
    else if (code === 27) next.inverse = false;
    else if (code >= 30 && code <= 37) next.fg = code - 30;
    else if (code >= 90 && code <= 97) next.fg = code - 82;
    else if (code === 39) next.fg = null;
    else if (code >= 40 && code <= 47) next.bg = code - 40;
    else if (code >= 100 && code <= 107) next.bg = code - 92;
    else if (code === 49) next.bg = null;
    else if (code === 38 || code === 48) {
      const [color, used] = extended(codes.slice(i + 1));
      next[code === 38 ? "fg" : "bg"] = color;
      i += used;
    }
  }
  return next;
}

/** A colour of 256 (the first 16 by number, as themes define them) or of 24 bits, and how many codes it takes. */
function extended([kind, a, b, c]) {
  if (kind === 2) return [rgb(a, b, c), 4];
  if (kind !== 5 || !(a >= 0 && a <= 255)) return [null, 1];
  if (a < 16) return [a, 2];
  if (a >= 232) return [rgb(8 + (a - 232) * 10, 8 + (a - 232) * 10, 8 + (a - 232) * 10), 2];
  const level = (n) => (n ? 55 + n * 40 : 0);
  const n = a - 16;
  return [rgb(level(Math.floor(n / 36)), level(Math.floor(n / 6) % 6), level(n % 6)), 2];
}

function rgb(...channels) {
  return `rgb(${channels.map((c) => Math.min(255, Math.max(0, c | 0))).join(" ")})`;
}

/** The element for a part. Its text is text. */
export function element({ text, style }) {
  if (style === plain) return document.createTextNode(text);
  const span = document.createElement("span");
  span.textContent = text;
  const [fg, bg] = style.inverse ? [style.bg ?? "inverse", style.fg ?? "inverse"] : [style.fg, style.bg];
  for (const name of ["bold", "dim", "italic", "underline"]) if (style[name]) span.classList.add(`ansi-${name}`);
  if (typeof fg === "string" && fg !== "inverse") span.style.color = fg;
  else if (fg != null) span.classList.add(`ansi-fg-${fg}`);
  if (typeof bg === "string" && bg !== "inverse") span.style.backgroundColor = bg;
  else if (bg != null) span.classList.add(`ansi-bg-${bg}`);
  return span;
}
