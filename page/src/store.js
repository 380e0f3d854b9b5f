// The state that the agent pushes: the node, its pods and the open pod. Components are told once per frame.
import { append, appendContainers, trim } from "./history.js";

/** Points in the hour of the node and in the ten minutes of the open pod. */
const nodePoints = 360;
const podPoints = 60;

export function createStore(schedule = (f) => requestAnimationFrame(f)) {
  const subscribers = new Set();
  let scheduled = false;
  const state = {
    node: null,
    pods: null, // Map of rows by UID; null before the first list
    nodeHistory: null,
    detail: undefined, // of the open pod; null if there is no such pod
    podHistory: null,
    connection: { state: "connecting" },
  };

  function changed() {
    if (scheduled) return;
    scheduled = true;
    schedule(() => {
      scheduled = false;
      for (const f of [...subscribers]) f();
    });
  }

  const apply = {
    connection: (connection) => (state.connection = connection),
    node: (view) => (state.node = view),
    pods: (rows) => (state.pods = new Map(rows.map((r) => [r.uid, r]))),
    pod: (row) => state.pods?.set(row.uid, row),
    gone: ({ uid }) => state.pods?.delete(uid),
    usage(values) {
      for (const [uid, [cpu, memory]] of Object.entries(values)) {
        const row = state.pods?.get(uid);
        if (row) state.pods.set(uid, { ...row, cpu, memory });
      }
    },
    nodeHistory: (history) => (state.nodeHistory = trim(history)),
    sample(point) {
      if (state.nodeHistory) state.nodeHistory = append(state.nodeHistory, point, nodePoints);
    },
    detail(detail) {
      state.detail = detail;
      if (detail?.history) state.podHistory = detail.history;
    },
    containers(point) {
      state.podHistory = appendContainers(state.podHistory ?? { t: [], containers: {} }, point, podPoints);
    },
    podClosed() {
      state.detail = undefined;
      state.podHistory = null;
    },
  };

  return {
    state,
    /** What the stream and the connection report; unknown kinds of a newer agent are ignored. */
    receive(kind, data) {
      if (!Object.hasOwn(apply, kind)) return;
      apply[kind](data);
      changed();
    },
    subscribe(f) {
      subscribers.add(f);
      return () => subscribers.delete(f);
    },
  };
}

/** The row of a pod by name. Of several, the newest: an older one is on its way out. */
export function findPod(pods, namespace, name) {
  let found = null;
  for (const row of pods?.values() ?? []) {
    if (row.namespace === namespace && row.name === name && (!found || (row.created ?? "") > (found.created ?? ""))) found = row;
  }
  return found;
}
