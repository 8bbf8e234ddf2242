// The live view of how busy the server is: asked each second while it is open and to be seen.

import { loads } from './api.js';
import { byId, el, rate, size, time } from './dom.js';

/** Steps that the curve shows, in samples. */
const SAMPLES = 90;
const [WIDTH, HEIGHT] = [240, 56];
const SVG = 'http://www.w3.org/2000/svg';

/** @param {string} tag @param {Record<string, string | number>} attributes */
function svg(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  return made;
}

/** A field of an answer as a number; what is missing is 0. @param {any} value */
const number = (value) => (Number.isFinite(value) ? value : 0);

export class Status {
  constructor() {
    this.panel = byId('status');
    this.button = byId('open-status');
    /** @type {any} */
    this.before = undefined;
    /** @type {number[]} */
    this.steps = [];
    /** @type {Record<string, HTMLElement>} */
    this.cells = {};
    this.line = svg('polyline', { points: '', fill: 'none', stroke: 'currentColor', 'stroke-width': 1.5 });
    this.used = svg('rect', { height: 8, width: 0, class: 'used' });
    this.cached = svg('rect', { height: 8, width: 0, class: 'cached' });
    this.build();
    this.button.addEventListener('click', () => this.toggle());
    document.addEventListener('visibilitychange', () => this.next(0));
  }

  /** A cell that is filled later. @param {string} name @param {'td' | 'dd' | 'p' | 'span'} [tag] */
  cell(name, tag = 'dd') {
    return (this.cells[name] = el(tag, {}, '–'));
  }

  build() {
    const classes = ['interactive', 'batch', 'background'];
    const row = (/** @type {string} */ name) => {
      const numbers = [this.cell(`waiting ${name}`, 'td'), this.cell(`running ${name}`, 'td')];
      return el('tr', {}, el('th', { scope: 'row' }, name), ...numbers);
    };
    const column = (/** @type {string} */ name) => el('th', { scope: 'col' }, name);
    const head = el('tr', {}, el('td'), column('waiting'), column('running'));
    const viewBox = `0 0 ${WIDTH} ${HEIGHT}`;
    const curve = svg('svg', { viewBox, role: 'img', 'aria-label': 'Time per step, lately' });
    curve.append(this.line);
    const bar = svg('svg', { viewBox: `0 0 ${WIDTH} 8`, class: 'meter', 'aria-hidden': 'true' });
    bar.append(svg('rect', { height: 8, width: WIDTH, class: 'all' }), this.cached, this.used);
    const list = (/** @type {string[]} */ ...names) =>
      el('dl', {}, ...names.flatMap((name) => [el('dt', {}, name), this.cell(name)]));
    const close = el('button', { type: 'button', class: 'quiet', onclick: () => this.toggle() }, 'Close');
    this.wrong = el('p', { class: 'wrong', role: 'status' });
    this.panel.append(
      el('div', { class: 'head' }, el('h2', {}, 'Server'), close),
      this.wrong,
      el('h3', {}, 'Queue'),
      el('table', {}, el('thead', {}, head), el('tbody', {}, ...classes.map(row))),
      el('h3', {}, 'Speed'),
      list('Generated', 'Prompt', 'From the cache'),
      el('h3', {}, 'Time per step'),
      this.cell('Step', 'p'),
      /** @type {any} */ (curve),
      el('h3', {}, 'KV cache'),
      /** @type {any} */ (bar),
      list('In use', 'Kept for later', 'In all'),
      el('h3', {}, 'Since the start'),
      list('Tokens', 'Steps', 'Busy', 'Up', 'Version'),
    );
  }

  toggle() {
    this.panel.hidden = !this.panel.hidden;
    this.button.setAttribute('aria-expanded', String(!this.panel.hidden));
    this.asking?.abort();
    if (this.panel.hidden) this.button.focus();
    else this.panel.querySelector('button')?.focus();
    this.next(0);
  }

  /** Asks after a while, if somebody can see the answer. @param {number} wait in milliseconds */
  next(wait) {
    clearTimeout(this.timer);
    if (this.panel.hidden || document.hidden) return;
    this.timer = setTimeout(() => this.ask(), wait);
  }

  async ask() {
    const asking = new AbortController();
    this.asking?.abort();
    this.asking = asking;
    let wait = 1000;
    try {
      const now = await loads(asking.signal);
      if (asking.signal.aborted) return;
      this.show(now);
      this.wrong?.replaceChildren(now.draining ? 'The server is draining: it takes no more requests.' : '');
    } catch (error) {
      if (asking.signal.aborted) return;
      this.wrong?.replaceChildren(/** @type {Error} */ (error).message);
      wait = 5000;
    }
    this.next(wait);
  }

  /** @param {string} name @param {string | number} value */
  say(name, value) {
    if (this.cells[name].textContent !== String(value)) this.cells[name].textContent = String(value);
  }

  /** @param {any} now an answer of `/v1/loads` */
  show(now) {
    for (const name of ['interactive', 'batch', 'background']) {
      this.say(`waiting ${name}`, number(now.waiting?.[name]));
      this.say(`running ${name}`, number(now.running?.[name]));
    }
    const { total_bytes: all, used_bytes: used, cached_bytes: cached } = now.kv ?? {};
    const share = (/** @type {any} */ bytes) => Math.min(WIDTH, (WIDTH * number(bytes)) / Math.max(1, number(all)));
    this.used.setAttribute('width', share(used).toFixed(1));
    this.cached.setAttribute('x', share(used).toFixed(1));
    this.cached.setAttribute('width', Math.min(share(cached), WIDTH - share(used)).toFixed(1));
    this.say('In use', size(number(used)));
    this.say('Kept for later', size(number(cached)));
    this.say('In all', size(number(all)));
    this.say('Tokens', `${number(now.generated_tokens)} made, ${number(now.prompt_tokens)} read`);
    this.say('Steps', number(now.steps));
    this.say('Busy', time(number(now.busy_seconds)));
    this.say('Up', time(number(now.uptime_seconds)));
    this.say('Version', String(now.version ?? ''));

    const before = this.before;
    this.before = now;
    /** How much a counter rose; it falls if the server was started again. @param {string} name */
    const rise = (name) => Math.max(0, number(now[name]) - number(before?.[name]));
    const seconds = rise('uptime_seconds');
    if (!before || !seconds) return;
    this.say('Generated', `${rate(rise('generated_tokens') / seconds)} tokens/s`);
    this.say('Prompt', `${rate(rise('prompt_tokens') / seconds)} tokens/s`);
    const read = number(now.prompt_tokens);
    this.say('From the cache', read ? `${Math.round((100 * number(now.cached_tokens)) / read)} % of prompts` : '–');
    const steps = rise('steps');
    if (steps) this.steps.push(rise('busy_seconds') / steps);
    this.steps.splice(0, this.steps.length - SAMPLES);
    const most = Math.max(...this.steps, 1e-6);
    const last = `${time(number(now.last_step_seconds))} with ${number(now.last_step_tokens)} tokens`;
    this.say('Step', this.steps.length ? `${last}, lately up to ${time(most)}` : last);
    const place = (/** @type {number} */ step, /** @type {number} */ n) =>
      `${((n * WIDTH) / (SAMPLES - 1)).toFixed(1)},${(HEIGHT - 2 - (step / most) * (HEIGHT - 4)).toFixed(1)}`;
    this.line.setAttribute('points', this.steps.map(place).join(' '));
  }
}
