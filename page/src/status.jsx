import { Icon } from "./icon.jsx";

/** Colour, shape and text say the same. */
export function Status({ tone, children }) {
  return (
    <span class={`status ${tone}`}>
      <Icon name={tone} />
      <span class="clip">{children}</span>
    </span>
  );
}
