// Markdown to elements. Any text gives something, in time linear in its length, and nothing but text nodes
// and elements of the kinds below is ever made. Pictures are links: the page loads nothing for an answer.
// Formulas and code are set as they were written; `Drawn` makes more of them.

import { button, copy, el } from './dom.js';

/** Levels of quotes and lists within each other; what is deeper is a paragraph. */
const DEPTH = 12;
/** Backslashes make these plain. TeX's spaces `\\,`, `\\:` and `\\;` are left as they are. */
const ESCAPED = '\\`*_{}[]()#+-.!|~<>"\'$&/=?@^%';
/** Characters of a formula, and lines of one that stands by itself; what is longer is text. */
const [FORMULA, LINES] = [5000, 60];
/** What begins a formula, and what ends it. */
const MARKS = { '\\(': '\\)', '\\[': '\\]', $$: '$$', $: '$' };
const BEGINS = /^\s*(?:\\\[|\$\$|\\begin\{((?:equation|align|gather|alignat|multline|CD)\*?)\})/;

/**
 * What is around a part: levels of quotes and lists, marks of the headings above, whether more may follow.
 * @typedef {import('./rich.js').Drawn} Drawn
 * @typedef {{drawn: Drawn, depth: number, outline: number[], isLive: boolean}} Context
 */

/** Whether what stands between two dollars is prose, as in `$5 for one or 9$`. @param {string} text */
const isProse = (text) =>
  !/[\\^_={}]/.test(text) && /\p{L}{2,}\s+\p{L}{2,}|^\d[\d.,]*\s+\(?\p{L}{2,}/u.test(text);

/**
 * The formula that begins at a place: its end, and its TeX, which is empty while the end has not come. Each
 * kind of end is searched once for all places before it. @param {string} text
 */
function formulas(text) {
  /** @type {Map<string, number>} */
  const ends = new Map();
  return (/** @type {number} */ at) => {
    const name = text.startsWith('\\begin', at) && BEGINS.exec(text.slice(at, at + 20))?.[1];
    const [begin, mark] = name
      ? ['', `\\end{${name}}`]
      : Object.entries(MARKS).find(([begin]) => text.startsWith(begin, at)) ?? ['', ''];
    if (!mark) return undefined;
    const [from, isBlock] = [at + begin.length, begin !== '$' && begin !== '\\('];
    let end = ends.get(mark) ?? text.indexOf(mark, from);
    while (end >= 0 && (end < from || (begin === '$' && text[end - 1] === '\\'))) {
      end = text.indexOf(mark, Math.max(end + 1, from));
    }
    ends.set(mark, end);
    const isLong = begin === '$' || text.length - from > FORMULA + mark.length;
    if (end < 0) return isLong ? undefined : { end: text.length, tex: '', isBlock };
    const tex = text.slice(from, name ? end + mark.length : end);
    const isIn = begin === '$' && /[\p{L}\p{N}$]/u.test((text[at - 1] ?? '') + (text[end + 1] ?? ''));
    const isMoney = begin === '$' && (isIn || tex.trim() !== tex || tex.includes('`') || isProse(tex));
    return isMoney || !tex.trim() || tex.length > FORMULA ? undefined : { end: end + mark.length, tex, isBlock };
  };
}

/**
 * A formula that stands by itself, with the mark that ends its sentence, and the line behind it.
 * @param {string[]} lines @param {number} at @param {Context} context
 * @returns {[Element, number] | undefined}
 */
function display(lines, at, { drawn, isLive }) {
  if (!BEGINS.test(lines[at])) return undefined;
  let last = at;
  while (last < Math.min(lines.length, at + LINES) && lines[last].trim()) last += 1;
  const text = lines.slice(at, last).join('\n').trimStart();
  const { end, tex } = formulas(text)(0) ?? { end: 0, tex: '' };
  const rest = text.slice(end).split('\n', 1)[0].trim();
  if (!end || !/^[.,;:!?]?$/.test(rest) || !(tex || (isLive && isLast(lines, last)))) return undefined;
  const source = text.slice(0, end);
  return [el('p', {}, formula(source + rest, tex && tex + rest, true, drawn)), at + source.split('\n').length];
}

/**
 * A formula. While its end has not come, it stays as it is, so that no half of one is taken for emphasis.
 * @param {string} source @param {string} tex @param {boolean} isBlock @param {Drawn} drawn
 */
function formula(source, tex, isBlock, drawn) {
  const made = el('span', { class: isBlock ? 'formula block' : 'formula' }, source);
  if (tex) drawn.formula?.(made, tex, isBlock);
  return made;
}

/**
 * Appends inline markdown: emphasis, code, links, formulas. The stack of what is open has every kind once at
 * most, so an element moves a few times at most when something turns out not to be closed.
 * @param {Element} parent @param {string} text @param {Context} context
 */
function inline(parent, text, context) {
  /** @typedef {{char: string, size: number, mark: string, nodes: (Node | string)[]}} Frame */
  /** @type {Frame[]} */
  const stack = [{ char: '', size: 0, mark: '', nodes: [] }];
  let plain = '';
  const ticks = backticks(text);
  const formulaAt = formulas(text);

  const top = () => stack[stack.length - 1];
  const flush = () => {
    if (plain) top().nodes.push(plain);
    plain = '';
  };
  /** Frames above this one were never closed: their markers are text. @param {number} at */
  const unwind = (at) => {
    flush();
    for (const frame of stack.splice(at + 1)) {
      stack[at].nodes.push(frame.mark);
      for (const node of frame.nodes) stack[at].nodes.push(node);
    }
  };
  /** Ends the frame at this place, and puts an element there. @param {number} at @param {Element} made */
  const close = (at, made) => {
    unwind(at);
    for (const node of stack[at].nodes) made.append(node);
    stack.pop();
    top().nodes.push(made);
  };
  /** @param {string} char @param {number} size */
  const find = (char, size) => stack.findLastIndex((frame) => frame.char === char && frame.size === size);
  /** @param {string} char @param {number} size @param {string} mark */
  const open = (char, size, mark) => {
    flush();
    stack.push({ char, size, mark, nodes: [] });
  };

  /** A run of `*`, `_` or `~`. @param {string} char @param {number} at @param {number} count */
  const run = (char, at, count) => {
    const [before, after] = [text[at - 1] ?? ' ', text[at + count] ?? ' '];
    const [space, mark, word] = [/\s/, /[\p{P}\p{S}]/u, /[\p{L}\p{N}]/u];
    const opens = !space.test(after) && (!mark.test(after) || space.test(before) || mark.test(before));
    const closes = !space.test(before) && (!mark.test(before) || space.test(after) || mark.test(after));
    const isMark = char !== '_';
    const mayOpen = opens && (isMark || !word.test(before));
    const mayClose = closes && (isMark || !word.test(after));
    const sizes = char === '~' ? [2] : [2, 1];
    while (count && count <= 3) {
      const ends = sizes.map((size) => (size <= count ? find(char, size) : -1));
      const exact = find(char, count);
      const end = mayClose ? (exact >= 0 ? exact : Math.max(...ends)) : -1;
      const size = end >= 0 ? stack[end].size : sizes.find((size) => size <= count && find(char, size) < 0);
      if (end >= 0) close(end, el(char === '~' ? 'del' : size === 2 ? 'strong' : 'em'));
      else if (mayOpen && size) open(char, size, char.repeat(size));
      else break;
      count -= size ?? 0;
    }
    plain += char.repeat(count);
  };

  let at = 0;
  while (at < text.length) {
    const char = text[at];
    const found = char === '\\' || char === '$' ? formulaAt(at) : undefined;
    if (found && (found.tex || context.isLive)) {
      flush();
      top().nodes.push(formula(text.slice(at, found.end), found.tex, found.isBlock, context.drawn));
      at = found.end;
    } else if (found) {
      // Where its end never came, it is text, with its backslash.
      plain += text.slice(at, at + 2);
      at += 2;
    } else if (char === '\\' && at + 1 < text.length && ESCAPED.includes(text[at + 1])) {
      plain += text[at + 1];
      at += 2;
    } else if (char === '\n' || (char === '<' && /^<br ?\/?>/i.test(text.slice(at, at + 6)))) {
      flush();
      top().nodes.push(el('br'));
      at = char === '\n' ? at + 1 : text.indexOf('>', at) + 1;
    } else if (char === '`') {
      const { size, end } = ticks(at);
      // While it is not closed, what follows stays as it is: it may be code.
      if (end < 0 && context.isLive) break;
      if (end < 0) plain += '`'.repeat(size);
      else {
        flush();
        const code = text.slice(at + size, end).replaceAll('\n', ' ');
        const isPadded = code.length > 2 && code.startsWith(' ') && code.endsWith(' ');
        top().nodes.push(el('code', {}, isPadded ? code.slice(1, -1) : code));
      }
      at = end < 0 ? at + size : end + size;
    } else if ('*_~'.includes(char)) {
      let end = at;
      while (text[end] === char) end += 1;
      run(char, at, end - at);
      at = end;
    } else if (char === '[' || (char === '!' && text[at + 1] === '[')) {
      // A later bracket is the better beginning of a link, so the earlier one is text.
      const before = stack.findIndex((frame) => frame.char === '[');
      if (before >= 0) unwind(before - 1);
      open('[', 1, char === '[' ? '[' : '![');
      at += char === '[' ? 1 : 2;
    } else if (char === ']') {
      const begin = find('[', 1);
      const target = begin >= 0 ? destination(text, at + 1) : undefined;
      if (target) {
        close(begin, link(target.href));
        at = target.end;
      } else {
        if (begin >= 0) unwind(begin - 1);
        plain += ']';
        at += 1;
      }
    } else if (char === 'h' && /^https?:\/\//.test(text.slice(at, at + 8)) && !/\w/.test(text[at - 1] ?? '')) {
      const end = address(text, at);
      const target = text.slice(at, end);
      if (find('[', 1) < 0 && safe(target)) {
        flush();
        top().nodes.push(link(target));
        /** @type {Element} */ (top().nodes.at(-1)).append(target);
      } else plain += target;
      at = end;
    } else {
      plain += char;
      at += 1;
    }
  }
  plain += text.slice(at);
  unwind(0);
  for (const node of stack[0].nodes) parent.append(node);
}

/** Runs of backticks: their sizes, and where the next of the same size begins, or -1. @param {string} text */
function backticks(text) {
  /** @type {Map<number, {size: number, end: number}>} */
  const runs = new Map();
  /** @type {Map<number, {size: number, end: number}>} */
  const last = new Map();
  for (const { 0: marks, index } of text.matchAll(/`+/g)) {
    const run = { size: marks.length, end: -1 };
    const before = last.get(run.size);
    if (before) before.end = index;
    last.set(run.size, run);
    runs.set(index, run);
  }
  return (/** @type {number} */ at) => runs.get(at) ?? { size: 1, end: -1 };
}

/**
 * The `(target "title")` of a link. It ends at a bracket at the latest, so that no character is read often.
 * @param {string} text @param {number} at
 */
function destination(text, at) {
  if (text[at] !== '(') return undefined;
  let [end, depth] = [at + 1, 0];
  for (; end < text.length && !/[\s<>[\]]/.test(text[end]); end += 1) {
    if (text[end] === '(') depth += 1;
    else if (text[end] === ')' && (depth -= 1) < 0) break;
  }
  const href = text.slice(at + 1, end);
  if (text[end] === ' ' && text[end + 1] === '"') {
    end += 2;
    while (end < text.length && !/["\n[\]]/.test(text[end])) end += 1;
    end += 1;
  }
  return text[end] === ')' && safe(href) ? { href, end: end + 1 } : undefined;
}

/** Where an address in a text ends. @param {string} text @param {number} at */
function address(text, at) {
  let end = at;
  while (end < text.length && !/[\s<>"`|[\]\\*]/.test(text[end])) end += 1;
  while (/[.,;:!?'_~]/.test(text[end - 1])) end -= 1;
  if (text[end - 1] === ')' && !text.slice(at, end).includes('(')) end -= 1;
  return end;
}

/** Whether a link may lead there. @param {string} href */
function safe(href) {
  try {
    return ['http:', 'https:', 'mailto:'].includes(new URL(href).protocol);
  } catch {
    return false;
  }
}

/** @param {string} href */
const link = (href) => el('a', { href, rel: 'noopener noreferrer', target: '_blank' });

/**
 * A block of code, with what language it is in and a button that copies it.
 * @param {string} text @param {string} language @param {Drawn} drawn
 */
export function code(text, language, drawn) {
  const bar = el('div', { class: 'bar' }, el('span', {}, language || 'code'));
  bar.append(button('Copy', () => copy(text), 'Copied', 'Copy code'));
  const made = el('code', {}, text);
  if (language) drawn.code?.(made, text, language);
  return el('div', { class: 'code' }, bar, el('pre', { tabindex: 0 }, made));
}

/** @param {string} line */
const indent = (line) => line.length - line.trimStart().length;

/** Whether a line is a rule; one that is longer than any screen is text. @param {string} line */
function isRule(line) {
  if (line.length > 200) return false;
  const bare = line.replace(/\s/g, '');
  return bare.length > 2 && '*-_'.includes(bare[0]) && bare === bare[0].repeat(bare.length);
}

/** @param {string} line */
const fenced = (line) => /^\s*(`{3,}(?=[^`]*$)|~{3,})(.*)$/.exec(line);

/** Tabs before a line's text as spaces. @param {string} line */
const expand = (line) => line.replace(/^[\t ]+/, (space) => space.replaceAll('\t', '    '));

/** @param {string} line */
const item = (line) => (isRule(line) ? null : /^(\s*)([-*+]|\d{1,9}[.)])(?:(\s+)|$)/.exec(line));

/** @param {string} line */
const isDivider = (line = '') => line.includes('|') && line.includes('-') && !/[^\s|:-]/.test(line);

/** Whether a line ends the paragraph before it. @param {string[]} lines @param {number} at */
const begins = (lines, at) =>
  !lines[at].trim() ||
  /^\s{0,3}(#{1,6}\s|>)/.test(lines[at]) ||
  isRule(lines[at]) ||
  !!fenced(lines[at]) ||
  !!item(lines[at]) ||
  (lines[at].includes('|') && isDivider(lines[at + 1])) ||
  BEGINS.test(lines[at]);

/** Whether there is nothing from a line on but one that begins. @param {string[]} lines @param {number} at */
const isLast = (lines, at) => at >= lines.length || (at === lines.length - 1 && !lines[at].trim());

/** What is around a block's parts; more may follow the last. @param {Context} context @param {boolean} isEnd */
const inner = (context, isEnd) => ({ ...context, depth: context.depth + 1, isLive: context.isLive && isEnd });

/**
 * The block that begins at a line: what it is, and the line behind it.
 * @param {string[]} lines @param {number} at @param {Context} context
 * @returns {[Element, number]}
 */
function block(lines, at, context) {
  const { depth, outline, drawn } = context;
  const line = lines[at];
  let end = at + 1;
  const fence = fenced(line);
  if (fence) {
    const [strip, mark] = [indent(line), fence[1]];
    const isEnd = (/** @type {string} */ text) => {
      const bare = text.trim();
      return bare.length >= mark.length && bare === mark[0].repeat(bare.length);
    };
    while (end < lines.length && !isEnd(lines[end])) end += 1;
    const held = lines.slice(at + 1, end).map((text) => text.slice(Math.min(strip, indent(text))));
    return [code(held.join('\n'), fence[2].trim(), drawn), end + 1];
  }
  const heading = /^\s{0,3}(#{1,6})\s(.*)$/.exec(line);
  if (heading) {
    // The first is below the page's own heading, and no level is left out, whatever the marks are.
    while ((outline.at(-1) ?? 0) >= heading[1].length) outline.pop();
    outline.push(heading[1].length);
    const made = el(/** @type {'h2'} */ (`h${Math.min(6, outline.length + 1)}`));
    inline(made, heading[2].trim().replace(/(^|\s)#+$/, ''), inner(context, isLast(lines, end)));
    return [made, end];
  }
  if (isRule(line)) return [el('hr'), end];
  if (depth < DEPTH && /^\s{0,3}>/.test(line)) {
    while (end < lines.length && /^\s{0,3}>/.test(lines[end])) end += 1;
    const made = el('blockquote');
    const held = lines.slice(at, end).map((text) => text.replace(/^\s*> ?/, ''));
    blocks(made, held, inner(context, isLast(lines, end)));
    return [made, end];
  }
  if (depth < DEPTH && item(line)) return list(lines, at, context);
  if (line.includes('|') && isDivider(lines[end])) return table(lines, at, context);
  const alone = display(lines, at, context);
  if (alone) return alone;
  while (end < lines.length && !begins(lines, end)) end += 1;
  const made = el('p');
  inline(made, lines.slice(at, end).map((text) => text.trim()).join('\n'), inner(context, isLast(lines, end)));
  return [made, end];
}

/**
 * A list. Lines that are indented by two or more belong to the item before them.
 * @param {string[]} lines @param {number} at @param {Context} context
 * @returns {[Element, number]}
 */
function list(lines, at, context) {
  const first = /** @type {RegExpExecArray} */ (item(expand(lines[at])));
  const base = first[1].length;
  const isNumbered = /\d/.test(first[2][0]);
  const made = isNumbered ? el('ol', { start: parseInt(first[2], 10) }) : el('ul');
  let end = at;
  for (let match = first; match; ) {
    const inside = match[1].length + match[2].length + Math.min(4, match[3]?.length || 1);
    const held = [expand(lines[end]).slice(match[0].length)];
    for (end += 1; end < lines.length; end += 1) {
      const line = expand(lines[end]);
      // Blank lines belong to the item if something indented follows.
      const isOutside = indent(line.trim() ? line : expand(lines[end + 1] ?? '')) < base + 2;
      if (isOutside && (begins(lines, end) || !held[held.length - 1].trim())) break;
      held.push(line.slice(Math.min(inside, indent(line))));
    }
    const entry = el('li');
    blocks(entry, held, inner(context, isLast(lines, end)));
    // An item of one paragraph is set tight.
    const first = entry.firstElementChild;
    if (first?.tagName === 'P') first.replaceWith(...first.childNodes);
    made.append(entry);
    let next = end;
    while (next < lines.length && !lines[next].trim()) next += 1;
    const following = next < lines.length ? item(expand(lines[next])) : null;
    if (!following || following[1].length >= base + 2 || /\d/.test(following[2][0]) !== isNumbered) break;
    [match, end] = [following, next];
  }
  return [made, end];
}

/** Cells of a row. Bars within `\\(` and `\\)` part none. @param {string} line */
function cells(line) {
  const found = [''];
  const bare = line.trim();
  const last = bare.lastIndexOf('\\)');
  for (let at = bare.startsWith('|') ? 1 : 0; at < bare.length; at += 1) {
    if (bare[at] === '\\' && bare[at + 1] === '|') found[found.length - 1] += bare[(at += 1)];
    else if (bare[at] === '\\' && bare[at + 1] === '(' && at < last) {
      const end = bare.indexOf('\\)', at) + 1;
      found[found.length - 1] += bare.slice(at, end + 1);
      at = end;
    }
    else if (bare[at] !== '|') found[found.length - 1] += bare[at];
    else if (at + 1 < bare.length) found.push('');
  }
  return found.map((cell) => cell.trim());
}

/**
 * A table; the second line says how columns are set.
 * @param {string[]} lines @param {number} at @param {Context} context
 * @returns {[Element, number]}
 */
function table(lines, at, context) {
  const side = (/** @type {string} */ cell) => (cell.startsWith(':') ? 'middle' : 'end');
  const sides = cells(lines[at + 1]).map((cell) => (cell.endsWith(':') ? side(cell) : ''));
  /** @param {string} line @param {'th' | 'td'} kind */
  const row = (line, kind) => {
    const made = el('tr');
    cells(line).forEach((cell, n) => {
      const scope = kind === 'th' && 'col';
      inline(made.appendChild(el(kind, { class: sides[n] || null, scope })), cell, { ...context, isLive: false });
    });
    return made;
  };
  const body = el('tbody');
  let end = at + 2;
  for (; end < lines.length && lines[end].includes('|'); end += 1) body.append(row(lines[end], 'td'));
  const made = el('table', {}, el('thead', {}, row(lines[at], 'th')), body);
  return [el('div', { class: 'wide', tabindex: 0 }, made), end];
}

/**
 * Appends the blocks of these lines. Returns the lines at which they begin, and the outline before each.
 * @param {Element} parent @param {string[]} lines @param {Context} context
 */
function blocks(parent, lines, context) {
  const starts = [];
  for (let at = 0; at < lines.length; ) {
    while (at < lines.length && !lines[at].trim()) at += 1;
    if (at === lines.length) break;
    starts.push({ at, outline: [...context.outline] });
    const [made, end] = block(lines, at, context);
    parent.append(made);
    at = end;
  }
  return starts;
}

/** Markdown that grows. Only the last two blocks are made again: a line that grows can change these. */
export class Markdown {
  /** @param {Element} parent @param {Drawn} [drawn] */
  constructor(parent, drawn = {}) {
    this.parent = parent;
    this.drawn = drawn;
    this.text = '';
    this.isLive = false;
    /** Where the blocks begin that may still change, how many are before them, and the outline there. */
    this.from = 0;
    this.settled = 0;
    this.outline = /** @type {number[]} */ ([]);
  }

  /** @param {string} text @param {boolean} [isLive] whether more may follow */
  set(text, isLive = false) {
    if (text === this.text && isLive === this.isLive) return;
    if (!text.startsWith(this.text)) [this.from, this.settled, this.outline] = [0, 0, []];
    [this.text, this.isLive] = [text, isLive];
    while (this.parent.childElementCount > this.settled) this.parent.lastElementChild?.remove();
    const lines = text.slice(this.from).split(/\r?\n/);
    const outline = [...this.outline];
    const starts = blocks(this.parent, lines, { drawn: this.drawn, depth: 0, outline, isLive });
    if (starts.length > 2) {
      const skipped = starts[starts.length - 2];
      this.settled += starts.length - 2;
      this.outline = skipped.outline;
      let from = this.from;
      for (let n = 0; n < skipped.at; n += 1) from = text.indexOf('\n', from) + 1;
      this.from = from;
    }
  }
}
