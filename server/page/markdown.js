// Markdown to elements. Any text gives something, in time linear in its length, and nothing but text nodes
// and elements of the kinds below is ever made. Pictures are links: the page loads nothing for an answer.

import { button, copy, el } from './dom.js';

/** Levels of quotes and lists within each other; what is deeper is a paragraph. */
const DEPTH = 12;
/** Backslashes make these plain. */
const ESCAPED = '\\`*_{}[]()#+-.!|~<>"\'$&,/:;=?@^%';

/**
 * Appends inline markdown: emphasis, code, links. The stack of what is open has every kind once at most, so
 * an element moves a few times at most when something turns out not to be closed.
 * @param {Element} parent
 * @param {string} text
 */
function inline(parent, text) {
  /** @typedef {{char: string, size: number, mark: string, nodes: (Node | string)[]}} Frame */
  /** @type {Frame[]} */
  const stack = [{ char: '', size: 0, mark: '', nodes: [] }];
  let plain = '';
  const ticks = backticks(text);

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

  for (let at = 0; at < text.length; ) {
    const char = text[at];
    if (char === '\\' && at + 1 < text.length && ESCAPED.includes(text[at + 1])) {
      plain += text[at + 1];
      at += 2;
    } else if (char === '\n' || (char === '<' && /^<br ?\/?>/i.test(text.slice(at, at + 6)))) {
      flush();
      top().nodes.push(el('br'));
      at = char === '\n' ? at + 1 : text.indexOf('>', at) + 1;
    } else if (char === '`') {
      const { size, end } = ticks(at);
      if (end < 0) plain += '`'.repeat(size);
      else {
        flush();
        const code = text.slice(at + size, end).replaceAll('\n', ' ');
        const isPadded = code.length > 2 && code.startsWith(' ') && code.endsWith(' ');
        top().nodes.push(el('code', {}, isPadded ? code.slice(1, -1) : code));
      }
      at = end < 0 ? at + size : end + size;
    } else if (char === '*' || char === '_' || char === '~') {
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
  unwind(0);
  for (const node of stack[0].nodes) parent.append(node);
}

/**
 * Runs of backticks: their sizes, and where the next run of the same size begins, -1 if there is none.
 * @param {string} text
 */
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
 * @param {string} text
 * @param {number} at
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

/** Where an address ends that stands in a text. @param {string} text @param {number} at */
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
 * @param {string} text
 * @param {string} language
 */
export function code(text, language) {
  const bar = el('div', { class: 'bar' }, el('span', {}, language || 'code'));
  bar.append(button('Copy', () => copy(text), 'Copied', 'Copy code'));
  return el('div', { class: 'code' }, bar, el('pre', { tabindex: 0 }, el('code', {}, text)));
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
  (lines[at].includes('|') && isDivider(lines[at + 1]));

/**
 * The block that begins at a line: what it is, and the line behind it.
 * @param {string[]} lines
 * @param {number} at
 * @param {number} depth
 * @returns {[Element, number]}
 */
function block(lines, at, depth) {
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
    const inner = lines.slice(at + 1, end).map((text) => text.slice(Math.min(strip, indent(text))));
    return [code(inner.join('\n'), fence[2].trim()), end + 1];
  }
  const heading = /^\s{0,3}(#{1,6})\s(.*)$/.exec(line);
  if (heading) {
    // The page's own headings are above those of an answer.
    const made = el(/** @type {'h3'} */ (`h${Math.min(6, heading[1].length + 2)}`));
    inline(made, heading[2].trim().replace(/(^|\s)#+$/, ''));
    return [made, end];
  }
  if (isRule(line)) return [el('hr'), end];
  if (depth < DEPTH && /^\s{0,3}>/.test(line)) {
    while (end < lines.length && /^\s{0,3}>/.test(lines[end])) end += 1;
    const made = el('blockquote');
    blocks(made, lines.slice(at, end).map((text) => text.replace(/^\s*> ?/, '')), depth + 1);
    return [made, end];
  }
  if (depth < DEPTH && item(line)) return list(lines, at, depth);
  if (line.includes('|') && isDivider(lines[end])) return table(lines, at);
  while (end < lines.length && !begins(lines, end)) end += 1;
  const made = el('p');
  inline(made, lines.slice(at, end).map((text) => text.trim()).join('\n'));
  return [made, end];
}

/**
 * A list. Lines that are indented by two or more belong to the item before them.
 * @param {string[]} lines
 * @param {number} at
 * @param {number} depth
 * @returns {[Element, number]}
 */
function list(lines, at, depth) {
  const first = /** @type {RegExpExecArray} */ (item(expand(lines[at])));
  const base = first[1].length;
  const isNumbered = /\d/.test(first[2][0]);
  const made = isNumbered ? el('ol', { start: parseInt(first[2], 10) }) : el('ul');
  let end = at;
  for (let match = first; match; ) {
    const inside = match[1].length + match[2].length + Math.min(4, match[3]?.length || 1);
    const inner = [expand(lines[end]).slice(match[0].length)];
    for (end += 1; end < lines.length; end += 1) {
      const line = expand(lines[end]);
      // Blank lines belong to the item if something indented follows.
      const isOutside = indent(line.trim() ? line : expand(lines[end + 1] ?? '')) < base + 2;
      if (isOutside && (begins(lines, end) || !inner[inner.length - 1].trim())) break;
      inner.push(line.slice(Math.min(inside, indent(line))));
    }
    const entry = el('li');
    blocks(entry, inner, depth + 1);
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

/** Cells of a row. @param {string} line */
function cells(line) {
  const found = [''];
  const bare = line.trim();
  for (let at = bare.startsWith('|') ? 1 : 0; at < bare.length; at += 1) {
    if (bare[at] === '\\' && bare[at + 1] === '|') found[found.length - 1] += bare[(at += 1)];
    else if (bare[at] !== '|') found[found.length - 1] += bare[at];
    else if (at + 1 < bare.length) found.push('');
  }
  return found.map((cell) => cell.trim());
}

/**
 * A table; the second line says how columns are set.
 * @param {string[]} lines
 * @param {number} at
 * @returns {[Element, number]}
 */
function table(lines, at) {
  const side = (/** @type {string} */ cell) => (cell.startsWith(':') ? 'middle' : 'end');
  const sides = cells(lines[at + 1]).map((cell) => (cell.endsWith(':') ? side(cell) : ''));
  /** @param {string} line @param {'th' | 'td'} kind */
  const row = (line, kind) => {
    const made = el('tr');
    cells(line).forEach((cell, n) => {
      const scope = kind === 'th' && 'col';
      inline(made.appendChild(el(kind, { class: sides[n] || null, scope })), cell);
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
 * Appends the blocks of these lines. Returns the lines at which they begin.
 * @param {Element} parent
 * @param {string[]} lines
 * @param {number} depth
 */
function blocks(parent, lines, depth) {
  const starts = [];
  for (let at = 0; at < lines.length; ) {
    if (!lines[at].trim()) {
      at += 1;
      continue;
    }
    const [made, end] = block(lines, at, depth);
    parent.append(made);
    starts.push(at);
    at = end;
  }
  return starts;
}

/** Markdown that grows. Only the last two blocks are made again: a line that grows can change these. */
export class Markdown {
  /** @param {Element} parent */
  constructor(parent) {
    this.parent = parent;
    this.text = '';
    /** Where the blocks begin that may still change, and how many are before them. */
    this.from = 0;
    this.settled = 0;
  }

  /** @param {string} text */
  set(text) {
    if (text === this.text) return;
    if (!text.startsWith(this.text)) [this.from, this.settled] = [0, 0];
    this.text = text;
    while (this.parent.childElementCount > this.settled) this.parent.lastElementChild?.remove();
    const lines = text.slice(this.from).split(/\r?\n/);
    const starts = blocks(this.parent, lines, 0);
    if (starts.length > 2) {
      const skipped = starts[starts.length - 2];
      this.settled += starts.length - 2;
      let from = this.from;
      for (let n = 0; n < skipped; n += 1) from = text.indexOf('\n', from) + 1;
      this.from = from;
    }
  }
}
