// Small helpers for elements. Nothing in the page turns text into HTML: all text becomes text nodes.

/**
 * Makes an element. Attributes that are `false`, `null` or missing are left out, `true` is an empty
 * attribute, and a function under a name such as `onclick` is a listener.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Node | string | null | undefined | false)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') made.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) made.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children) if (child || child === '') made.append(child);
  return made;
}

/**
 * The element of the page with this id.
 * @template {HTMLElement} [T=HTMLElement]
 * @param {string} id
 * @returns {T}
 */
export const byId = (id) => /** @type {T} */ (document.getElementById(id));

/**
 * A button that says for a moment what came of it.
 * @param {string} label
 * @param {() => Promise<void> | void} act
 * @param {string} [done] what the button says after success
 * @param {string} [longer] a longer name, for those who do not see where the button stands
 */
export function button(label, act, done, longer) {
  const made = el('button', { type: 'button', 'aria-label': longer });
  made.append(label);
  made.addEventListener('click', async () => {
    let said = done;
    try {
      await act();
    } catch {
      said = 'Failed';
    }
    if (!said) return;
    made.textContent = said;
    setTimeout(() => (made.textContent = label), 1500);
  });
  return made;
}

/**
 * Puts text on the clipboard. Pages that came over plain HTTP from another computer have no clipboard API.
 * @param {string} text
 */
export async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = el('textarea', { class: 'unseen', readonly: true });
  const before = /** @type {HTMLElement | null} */ (document.activeElement);
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand('copy');
  field.remove();
  before?.focus();
  if (!done) throw new Error('The browser did not copy.');
}

/** @param {number} bytes */
export function size(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  const power = Math.min(4, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** power;
  return `${value.toFixed(value < 10 ? 1 : 0)} ${'KMGT'[power - 1]}iB`;
}

/** @param {number} seconds */
export function time(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 120) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** @param {number} value */
export const rate = (value) => value.toFixed(value < 100 ? 1 : 0);
