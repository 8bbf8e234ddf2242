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
const [KEPT, LONGEST] = [500, 20_000];
/** Characters of code that are tried first, and milliseconds for a part that are no reason to look closer. */
const [FIRST, PATIENCE] = [1000, 60];

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

/** The part of code that was tried last. */
let tried = { language: '', text: '', took: 0, isSlow: false };

/**
 * The tree of some code. The library takes a time that is quadratic in the length for some texts. So the length
 * doubles, and nothing comes of it where the time for a character grows. Code that grows goes on from what was
 * tried of it.
 * @param {any} highlight
 * @param {string} text
 * @param {string} language
 */
function coloured(highlight, text, language) {
  const goesOn = tried.language === language && text.startsWith(tried.text);
  if (!goesOn) tried = { language, text: text.slice(0, FIRST / 2), took: Infinity, isSlow: false };
  while (!tried.isSlow) {
    const part = text.slice(0, Math.max(FIRST, 2 * tried.text.length));
    const before = performance.now();
    const made = highlight.highlight(part, { language, ignoreIllegals: true });
    const took = performance.now() - before;
    const [longer, slower] = [part.length / tried.text.length, took / tried.took];
    const isSlow = (longer > 1.5 && slower > 1.5 * longer) || took > 10 * PATIENCE;
    tried = { language, text: part, took, isSlow: took > PATIENCE && isSlow };
    if (part === text) return made._emitter.rootNode;
  }
  tried.language = '';
  return undefined;
}

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
      const tree = highlight.getLanguage(name) && coloured(highlight, text, name);
      if (!tree) return;
      /** @param {any} part @returns {Node | string} */
      const shown = (part) => {
        if (typeof part === 'string') return part;
        const span = el('span', { class: part.scope && `in-${part.scope.split('.')[0]}` });
        span.append(...part.children.map(shown));
        return span;
      };
      place.replaceChildren(...tree.children.map(shown));
    });
  },
};
