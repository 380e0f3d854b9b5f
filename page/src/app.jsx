import "./base.css";
import "./app.css";
import { Component, render } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { ConnectionBanner, ConnectionState } from "./connection.jsx";
import { Live, useLive } from "./hooks.js";
import { NodeView } from "./node.jsx";
import { PodView } from "./pod.jsx";
import { PodsView } from "./pods.jsx";
import { useRoute } from "./route.js";
import { createStore } from "./store.js";
import { openStream } from "./stream.js";
import { ThemeButton } from "./theme.jsx";

const store = createStore();

function App() {
  const route = useRoute();
  const open = route.view === "pod" ? `?pod=${encodeURIComponent(`${route.namespace}/${route.name}`)}` : "";
  const stream = useRef(null);
  const live = useMemo(() => ({ store, tryNow: () => stream.current.tryNow() }), []);
  useEffect(() => {
    stream.current = openStream(`api/stream${open}`, store.receive);
    return () => {
      stream.current.close();
      store.receive("podClosed");
    };
  }, [open]);
  return (
    <Live.Provider value={live}>
      <a class="skip" href="#main" onClick={skip}>Skip to content</a>
      <Header view={route.view} />
      <ConnectionBanner />
      <Boundary key={`${route.view} ${route.namespace} ${route.name}`}>
        <View route={route} />
      </Boundary>
    </Live.Provider>
  );
}

// The fragment is the route, so the link itself must not be followed.
function skip(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

function View({ route }) {
  useEffect(() => scrollTo(0, 0), []);
  if (route.view === "node") return <NodeView />;
  if (route.view === "pod") return <PodView key={`${route.namespace}/${route.name}`} {...route} />;
  return <PodsView />;
}

function Header({ view }) {
  const { node, pods } = useLive();
  const link = (name, href, current, note) => (
    <a href={href} aria-current={current ? "page" : undefined}>{name}{note != null && <span class="count">{note}</span>}</a>
  );
  return (
    <header class="header">
      <a class="brand" href="#/pods" aria-label="Swiftlet, pods">
        <svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true"><path d="M2 5c5 .3 8.500 2.300 10.500 5.500C15.500 7 19 5.500 22.500 6c-4 1-6.500 3.500-7.500 7.500-.6 2.600-2.300 4.600-5 5.500 1.300-1.700 1.900-3.200 1.800-4.700C9 14 6.500 12.800 5 10.500c1.700.4 3 .4 4 .1C7.500 8 5.200 6.200 2 5z" /></svg>
        <span>Swiftlet</span>
      </a>
      <nav aria-label="Views">
        {link("Pods", "#/pods", view !== "node", pods?.size)}
        {link("Node", "#/node", view === "node")}
      </nav>
      <span class="node-name clip">{node?.name}</span>
      <ConnectionState />
      <ThemeButton />
    </header>
  );
}

/** An error of one view leaves the others usable. */
class Boundary extends Component {
  state = { error: null };
  componentDidCatch(error) {
    this.setState({ error });
  }
  render({ children }, { error }) {
    if (!error) return children;
    return (
      <main id="main" class="page" tabIndex={-1}>
        <h1>This view failed</h1>
        <p>{String(error)}</p>
        <p><button class="button" onClick={() => this.setState({ error: null })}>Show it again</button></p>
      </main>
    );
  }
}

render(<App />, document.getElementById("app"));
