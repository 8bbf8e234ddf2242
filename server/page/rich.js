// Formulas by KaTeX, colours in code by highlight.js. Both come from this server, when the first one is seen.
// Neither makes HTML from text: the trees that they build become elements.

import { el } from './dom.js';

/**
 * Parts of markdown that are more than text. Each is called with an element that holds the part as written.
 * @typedef {object} Drawn
 * @property {(place: HTMLElement, tex: string, isBlock: boolean) => void} [formula]
 * @property {(place: HTMLElement, text: string, language: string) => void} [code]
 */

/** Milliseconds of drawing without a pause. What is more waits, so that the page stays quick. */
const SLICE = 40;
/** Formulas whose trees are kept, and characters of code that get colours. */
const [KEPT, LONGEST] = [500, 50_000];

/** Work of both kinds that waits, in its order. @type {{place: HTMLElement, draw: () => void}[]} */
const waiting = [];
let spent = 0;
let isSet = false;

/** Does a piece of work. What it cannot draw stays as it was written. @param {() => void} draw */
function run(draw) {
  const before = performance.now();
  try {
    draw();
  } catch {
    // A mistake in a formula is shown by its text.
  }
  spent += performance.now() - before;
}

/** Draws what waits after a pause, and goes on so until nothing does. */
function later() {
  if (isSet) return;
  isSet = true;
  setTimeout(() => {
    [isSet, spent] = [false, 0];
    while (waiting.length && spent < SLICE) {
      const next = waiting.shift();
      // What was made again meanwhile has work of its own.
      if (next?.place.isConnected) run(next.draw);
    }
    if (waiting.length) later();
  });
}

/** A library that is loaded when it is needed first. @template T */
class Library {
  /** @param {() => Promise<T>} load */
  constructor(load) {
    this.load = load;
    /** @type {T | undefined} */
    this.loaded = undefined;
    /** @type {Promise<void> | undefined} */
    this.loading = undefined;
  }

  /**
   * Draws at once if there is time: what grows is made again and again, and would flicker otherwise.
   * @param {HTMLElement} place
   * @param {(library: T) => void} draw
   */
  ask(place, draw) {
    const { loaded } = this;
    if (loaded && spent < SLICE) {
      run(() => draw(loaded));
      later();
      return;
    }
    const wait = () => {
      waiting.push({ place, draw: () => draw(/** @type {T} */ (this.loaded)) });
      later();
    };
    if (loaded) return wait();
    this.loading ??= this.load().then((library) => {
      this.loaded = library;
    });
    this.loading.then(wait, () => (this.loading = undefined));
  }
}

const katex = new Library(async () => {
  const place = './katex-0.19.1/katex.min';
  const sheet = el('link', { rel: 'stylesheet', href: `${place}.css` });
  const styled = new Promise((resolve, reject) => {
    sheet.addEventListener('load', resolve);
    sheet.addEventListener('error', reject);
  });
  document.head.append(sheet);
  await Promise.all([styled, import(`${place}.js`)]);
  return /** @type {any} */ (globalThis).katex;
});

const highlight = new Library(async () => (await import('./highlight-11.12.0/highlight.min.js')).default);

/** Trees of formulas by their text, since a paragraph that grows is made often. @type {Map<string, any>} */
const trees = new Map();

/**
 * Takes styles out of the attributes of a tree, where the page's policy forbids them. They become properties
 * of the elements.
 * @param {any} node
 */
function strip(node) {
  const { style } = node.attributes ?? {};
  if (style) {
    delete node.attributes.style;
    const make = node.toNode.bind(node);
    node.toNode = () => {
      const made = make();
      made.style.cssText = style;
      return made;
    };
  }
  for (const child of node.children ?? []) strip(child);
  return node;
}

/** Marks formulas that are wider than their place, so that keys can scroll them. */
const widths = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (!target.isConnected) widths.unobserve(target);
    else if (target.scrollWidth > target.clientWidth) target.setAttribute('tabindex', '0');
    else target.removeAttribute('tabindex');
  }
});

/** What a conversation draws. @type {Drawn} */
export const drawn = {
  formula: (place, tex, isBlock) =>
    katex.ask(place, (katex) => {
      const name = `${isBlock}${tex}`;
      let tree = trees.get(name);
      if (!tree) {
        const options = { displayMode: isBlock, throwOnError: true, strict: 'ignore', maxSize: 20 };
        tree = strip(katex.__renderToDomTree(tex, options));
        if (trees.size >= KEPT) trees.clear();
        trees.set(name, tree);
      }
      place.replaceChildren(tree.toNode());
      if (isBlock) widths.observe(place);
    }),

  code: (place, text, language) => {
    const name = /^[\w+#.-]*/.exec(language.toLowerCase())?.[0] ?? '';
    if (!name || text.length > LONGEST) return;
    highlight.ask(place, (highlight) => {
      if (!highlight.getLanguage(name)) return;
      const made = highlight.highlight(text, { language: name, ignoreIllegals: true });
      /** @param {any} part @returns {Node | string} */
      const shown = (part) => {
        if (typeof part === 'string') return part;
        const span = el('span', { class: part.scope && `in-${part.scope.split('.')[0]}` });
        span.append(...part.children.map(shown));
        return span;
      };
      const parts = made._emitter.rootNode.children.map(shown);
      place.replaceChildren(...parts);
    });
  },
};
