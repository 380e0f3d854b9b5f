// Finds text in the lines on screen, and marks it without changing them.

const most = 5000;

/** The ranges that contain the text, ignoring case. */
export function find(lines, text) {
  const ranges = [];
  const wanted = text.toLowerCase();
  if (!wanted) return ranges;
  for (const line of lines) {
    const nodes = textNodes(line);
    const all = nodes.map((n) => n.data).join("").toLowerCase();
    for (let at = all.indexOf(wanted); at >= 0 && ranges.length < most; at = all.indexOf(wanted, at + wanted.length)) {
      ranges.push(range(nodes, at, at + wanted.length));
    }
  }
  return ranges;
}

function textNodes(line) {
  const nodes = [];
  const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) if (walker.currentNode.parentNode.nodeName !== "TIME") nodes.push(walker.currentNode);
  return nodes;
}

function range(nodes, from, to) {
  const found = document.createRange();
  let at = 0;
  for (const node of nodes) {
    const end = at + node.length;
    if (from >= at && from < end) found.setStart(node, from - at);
    if (to > at && to <= end) found.setEnd(node, to - at);
    at = end;
  }
  return found;
}

/** Marks ranges, and one of them as the current one. Browsers without highlights scroll to it only. */
export function mark(ranges, current) {
  if (!CSS.highlights) return;
  CSS.highlights.set("found", new Highlight(...ranges));
  CSS.highlights.set("found-current", new Highlight(...(current ? [current] : [])));
}
