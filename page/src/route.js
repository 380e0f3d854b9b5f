// Views are addressed by the fragment: the page has one path, also behind kubectl proxy.
import { useEffect, useState } from "preact/hooks";

export const tabs = ["overview", "logs", "terminal", "yaml"];

export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [view, namespace, name, tab] = path.split("/").map(decode);
  const container = new URLSearchParams(query).get("container");
  if (view === "pods" && namespace && name) {
    return { view: "pod", namespace, name, tab: tabs.includes(tab) ? tab : "overview", container };
  }
  return { view: view === "node" ? "node" : "pods" };
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function podHref(namespace, name, tab = "overview", container = "") {
  const path = `#/pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  return path + (tab === "overview" ? "" : `/${tab}`) + (container ? `?container=${encodeURIComponent(container)}` : "");
}

export function useRoute() {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = () => setHash(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return parse(hash);
}
