import { useEffect } from "preact/hooks";
import { useSetting } from "./hooks.js";
import { Icon } from "./icon.jsx";

const order = ["auto", "light", "dark"];

/** A button for light, dark, or what the system has. */
export function ThemeButton() {
  const [theme, setTheme] = useSetting("theme", "auto");
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    dispatchEvent(new Event("themechange"));
  }, [theme]);
  const next = order[(order.indexOf(theme) + 1) % order.length];
  return (
    <button class="button icon-button" onClick={() => setTheme(next)} aria-label={`Colours: ${theme}. Change to ${next}`} title={`Colours: ${theme}`}>
      <Icon name={`theme-${theme}`} />
    </button>
  );
}

/** A colour of the style sheet as canvas understands it. */
export function color(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

/** Calls f whenever colours change, until the function that it returns is called. */
export function onThemeChange(f) {
  const query = matchMedia("(prefers-color-scheme: dark)");
  query.addEventListener("change", f);
  addEventListener("themechange", f);
  return () => {
    query.removeEventListener("change", f);
    removeEventListener("themechange", f);
  };
}
