import { createContext } from "preact";
import { useContext, useEffect, useReducer, useRef, useState } from "preact/hooks";

/** The store and the stream, for all components. */
export const Live = createContext(null);

/** The state of the store. The component is rendered whenever it changes. */
export function useLive() {
  const { store } = useContext(Live);
  const [, render] = useReducer((n) => n + 1, 0);
  useEffect(() => store.subscribe(render), [store]);
  return store.state;
}

/** The time, and the component rendered again at this interval while the page is visible. */
export function useNow(interval = 1000) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || setNow(Date.now()), interval);
    return () => clearInterval(timer);
  }, [interval]);
  return Math.max(now, Date.now());
}

/** The size of an element, for the ref that is returned with it. */
export function useSize() {
  const ref = useRef(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setSize({ width: entry.contentRect.width, height: entry.contentRect.height }));
    observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return [ref, size];
}

/** A setting that the browser keeps, where it may. */
export function useSetting(name, initial) {
  const [value, setValue] = useState(() => read(name) ?? initial);
  return [value, (next) => {
    write(name, next);
    setValue(next);
  }];
}

function read(name) {
  try {
    return localStorage.getItem(`swiftlet.${name}`);
  } catch {
    return null;
  }
}

function write(name, value) {
  try {
    localStorage.setItem(`swiftlet.${name}`, value);
  } catch {
    // The browser keeps nothing: the setting is that of this page.
  }
}
