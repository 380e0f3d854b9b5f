// The event stream of the agent, opened again whenever it ends.

const kinds = ["node", "pods", "pod", "gone", "usage", "sample", "detail", "containers"];
const firstDelay = 1000;
const longestDelay = 15_000;
/** The agent sends a sample every 10 s: a stream without one for longer has stalled. */
const stalledAfter = 45_000;

/**
 * Opens the stream and reports what it receives, and the state of the connection: connecting, live, lost with the
 * time of the next try, or refused. Returns functions that close it and that try again at once.
 */
export function openStream(url, receive, attempt = 0) {
  let source, retry, watchdog, closed = false;

  function open() {
    clearTimeout(retry);
    source?.close();
    source = new EventSource(url);
    expectEvent();
    for (const kind of kinds) {
      source.addEventListener(kind, (event) => {
        expectEvent();
        if (kind === "pods" || kind === "node") {
          attempt = 0;
          receive("connection", { state: "live" });
        }
        receive(kind, JSON.parse(event.data));
      });
    }
    source.onerror = () => lost(source.readyState === EventSource.CLOSED);
  }

  function expectEvent() {
    clearTimeout(watchdog);
    watchdog = setTimeout(() => lost(false), stalledAfter);
  }

  async function lost(answered) {
    clearTimeout(watchdog);
    source.close();
    if (closed) return;
    const delay = Math.min(longestDelay, firstDelay * 2 ** attempt++);
    retry = setTimeout(open, delay);
    receive("connection", { state: "lost", retryAt: Date.now() + delay });
    if (answered && (await refused()) && !closed) {
      clearTimeout(retry);
      receive("connection", { state: "refused" });
    }
  }

  open();
  return {
    tryNow: open,
    close() {
      closed = true;
      clearTimeout(retry);
      clearTimeout(watchdog);
      source.close();
    },
  };
}

/** An EventSource does not tell the status of a response. */
async function refused() {
  try {
    const response = await fetch("api/history", { redirect: "manual" });
    return response.status === 401 || response.status === 403;
  } catch {
    return false;
  }
}
