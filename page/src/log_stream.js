import { createSplitter } from "./log_lines.js";
import { kubeletURL, reason } from "./request.js";

const delay = 2000;

/**
 * Reads a container's log and reports lines, and states in words, until the function that it returns is called. A log
 * that ends with an error is read again; restart is called before.
 */
export function readLog(of, { previous, follow }, { lines, state, restart }) {
  const abort = new AbortController();
  let retry;

  async function read() {
    restart();
    state("Reading the log…");
    const query = { tailLines: 1000, timestamps: true };
    if (follow && !previous) query.follow = true;
    if (previous) query.previous = true;
    let live = false;
    try {
      const response = await fetch(kubeletURL("containerLogs", of, query), { signal: abort.signal });
      if (!response.ok) throw new Error(await reason(response));
      live = true;
      state(follow && !previous ? "Following" : "Reading the log…");
      const split = createSplitter();
      const reader = response.body.getReader();
      for (let end = false; !end;) {
        const { value, done } = await reader.read();
        lines(split(done ? null : value));
        end = done;
      }
      state(follow && !previous ? "The log has ended: the container has stopped" : "Not following");
    } catch (err) {
      if (abort.signal.aborted) return;
      state(live ? "The connection is lost. Next try in 2 s" : `No log: ${err.message}. Next try in 2 s`);
      retry = setTimeout(read, delay);
    }
  }

  read();
  return () => {
    clearTimeout(retry);
    abort.abort();
  };
}
