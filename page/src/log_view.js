// The lines of a log on screen. They are added without a framework: a log may write thousands in a second.
import { createParser, element } from "./ansi.js";
import { timed } from "./log_lines.js";

/** What is kept; the oldest blocks go first. */
const blockLines = 200;
const mostLines = 10_000;
const mostCharacters = 4_000_000;

/** Blocks of lines, which the browser lays out only where they are on screen. */
export function createLogView(scroller) {
  const list = document.createElement("div");
  scroller.replaceChildren(list);
  let blocks = [], parse = createParser(), dropped = 0, waiting = [], frame = 0, atEnd = true;

  scroller.addEventListener("scroll", () => (atEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 24), { passive: true });
  const resize = new ResizeObserver(() => atEnd && toEnd());
  resize.observe(scroller);

  function toEnd() {
    scroller.scrollTop = scroller.scrollHeight;
  }

  function flush() {
    frame = 0;
    const added = waiting;
    waiting = [];
    for (const line of added.slice(-mostLines)) append(line);
    dropped += Math.max(0, added.length - mostLines);
    trim();
    if (atEnd) toEnd();
    view.onChange?.(dropped);
  }

  function append(line) {
    let block = blocks.at(-1);
    if (!block || block.lines === blockLines) {
      block = { node: document.createElement("div"), lines: 0, characters: 0 };
      block.node.className = "log-block";
      list.append(block.node);
      blocks.push(block);
    }
    const [time, text] = timed(line);
    const node = document.createElement("div");
    node.className = "log-line";
    if (time) {
      const t = document.createElement("time");
      t.textContent = `${time.slice(0, 10)} ${time.slice(11, 23)}`;
      t.dateTime = time;
      node.append(t);
    }
    node.append(...parse(text).map(element), "\n");
    block.node.append(node);
    block.lines++;
    block.characters += line.length;
  }

  function trim() {
    let lines = 0, characters = 0;
    for (const b of blocks) {
      lines += b.lines;
      characters += b.characters;
    }
    while (blocks.length > 1 && (lines > mostLines || characters > mostCharacters)) {
      const first = blocks.shift();
      first.node.remove();
      lines -= first.lines;
      characters -= first.characters;
      dropped += first.lines;
    }
  }

  const view = {
    /** Called with the number of lines that were dropped, after lines were added. */
    onChange: null,
    add(lines) {
      if (!lines.length) return;
      waiting.push(...lines);
      // What a hidden page would show is not kept for ever.
      if (waiting.length > 2 * mostLines) {
        dropped += waiting.length - mostLines;
        waiting = waiting.slice(-mostLines);
      }
      frame ||= requestAnimationFrame(flush);
    },
    clear() {
      cancelAnimationFrame(frame);
      frame = 0;
      blocks = [];
      waiting = [];
      dropped = 0;
      parse = createParser();
      atEnd = true;
      list.replaceChildren();
      view.onChange?.(0);
    },
    lines: () => list.getElementsByClassName("log-line"),
    end: () => ((atEnd = true), toEnd()),
    close() {
      cancelAnimationFrame(frame);
      resize.disconnect();
    },
  };
  return view;
}
