const shapes = {
  ok: <><circle cx="8" cy="8" r="7" class="fill" /><path d="M4.8 8.3 7 10.4l4.2-4.6" class="cut" /></>,
  done: <><circle cx="8" cy="8" r="6.2" class="line" /><path d="M5 8.3 7.1 10.3l3.9-4.3" class="line" /></>,
  wait: <><circle cx="8" cy="8" r="6.2" class="line dashed" /><path d="M8 4.6V8l2.4 1.6" class="line" /></>,
  bad: <><path d="M5.1 1h5.8L15 5.1v5.8L10.9 15H5.1L1 10.9V5.1z" class="fill" /><path d="m5.4 5.4 5.2 5.2m0-5.2-5.2 5.2" class="cut" /></>,
  warn: <><path d="M8 1.4 15.2 14H.8z" class="fill" /><path d="M8 5.8v3.9m0 1.6v.5" class="cut" /></>,
  unknown: <><circle cx="8" cy="8" r="6.2" class="line" /><path d="M6.2 6.3c.2-2.3 3.8-2.2 3.6 0-.1 1.4-1.8 1.3-1.8 2.9m0 1.7v.4" class="line" /></>,
  search: <><circle cx="7" cy="7" r="4.7" class="line" /><path d="m10.6 10.6 3.6 3.6" class="line" /></>,
  up: <path d="M8 13V3.4M4.2 7 8 3.2 11.8 7" class="line" />,
  down: <path d="M8 3v9.6M4.2 9 8 12.8 11.8 9" class="line" />,
  "theme-auto": <><circle cx="8" cy="8" r="6.2" class="line" /><path d="M8 1.8a6.2 6.2 0 0 1 0 12.4z" class="fill" /></>,
  "theme-light": <><circle cx="8" cy="8" r="3" class="line" /><path d="M8 .8v1.8m0 10.8v1.8M.8 8h1.8m10.8 0h1.8M2.9 2.9l1.3 1.3m7.6 7.6 1.3 1.3m0-10.2-1.3 1.3M4.2 11.8l-1.3 1.3" class="line" /></>,
  "theme-dark": <path d="M13.6 9.7A6 6 0 0 1 6.3 2.4a6 6 0 1 0 7.3 7.3z" class="line" />,
};

/** A drawing beside a text that says the same. */
export function Icon({ name }) {
  return <svg class={`icon icon-${name}`} viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">{shapes[name]}</svg>;
}
