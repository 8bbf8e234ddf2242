// Settings of a conversation: the dialog, the choice of the model, and what of it goes into a request.

import { key, models } from './api.js';
import { byId, el } from './dom.js';

/** @typedef {import('./store.js').Settings} Settings */

/**
 * @typedef {keyof Settings} Name
 * @typedef {object} Figure
 * @property {Name} name
 * @property {string} [field] name in the API, where it is another one
 * @property {string} label
 * @property {number} from
 * @property {number} [to]
 * @property {boolean} [isWhole]
 * @property {string} help range, and what holds where nothing is given
 */

/** Numbers of the settings. */
const FIGURES = /** @type {Figure[]} */ ([
  {
    name: 'max', field: 'max_completion_tokens', label: 'Max tokens', from: 1, isWhole: true,
    help: '1 or more; else what the context holds',
  },
  { name: 'seed', label: 'Seed', from: 0, isWhole: true, help: 'a whole number from 0; else a fresh one' },
  { name: 'temperature', label: 'Temperature', from: 0, to: 100, help: '0 to 100; 0 takes the likeliest; else 1' },
  { name: 'top_p', label: 'Top p', from: 0.0001, to: 1, help: 'above 0, up to 1; else 1, which is all' },
  { name: 'top_k', label: 'Top k', from: -1, isWhole: true, help: '1 or more; else all, as for 0 and -1' },
  { name: 'min_p', label: 'Min p', from: 0, to: 1, help: '0 to 1; else 0' },
  {
    name: 'repetition_penalty', label: 'Repetition penalty', from: 0.01, to: 100,
    help: '0.01 to 100; else 1, which is none',
  },
  { name: 'presence_penalty', label: 'Presence penalty', from: -2, to: 2, help: '-2 to 2; else 0' },
  { name: 'frequency_penalty', label: 'Frequency penalty', from: -2, to: 2, help: '-2 to 2; else 0' },
]);

/**
 * Texts that are checked while they are typed, each with what reads it.
 * @type {Partial<Record<Name, (text: string) => unknown>>}
 */
const CHECKED = { stops, bias: biases, tools };

/** Fields by their ids, which are the names in the settings. */
const FIELDS = /** @type {Name[]} */ ([
  ...['model', 'effort', 'system', 'stops', 'bias', 'format', 'schema', 'regex', 'lark'],
  ...['prediction', 'tools', 'choice'],
  ...FIGURES.map(({ name }) => name),
]);

const EXAMPLE = [
  {
    type: 'function',
    function: {
      name: 'get_weather',
      description: 'Weather at a place.',
      parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    },
  },
];

/** @param {string} text @param {string} what */
function json(text, what) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${what}: this is no JSON. ${/** @type {Error} */ (error).message}`);
  }
}

/**
 * The list of tools. A function may stand there alone, without the `type` around it.
 * @param {string} text
 */
function tools(text) {
  if (!text.trim()) return undefined;
  const list = json(text, 'Tools');
  if (!Array.isArray(list)) throw new Error('Tools: a list is expected, as in [{"type": "function", ...}].');
  return list.map((tool, n) => {
    const whole = tool?.function ? tool : { type: 'function', function: tool };
    if (typeof whole.function?.name === 'string') return whole;
    throw new Error(`Tools: number ${n + 1} has no name.`);
  });
}

/** Strings that end an answer, one in a line. @param {string} text */
function stops(text) {
  const list = text.split('\n').filter(Boolean);
  if (list.length > 16) throw new Error(`Stop: ${list.length} lines, 16 at most.`);
  return list.length ? list : undefined;
}

/** @param {string} text */
function biases(text) {
  if (!text.trim()) return undefined;
  const made = json(text, 'Logit bias');
  const isObject = typeof made === 'object' && made && !Array.isArray(made);
  const isBias = (/** @type {[string, unknown]} */ [id, bias]) => /^\d+$/.test(id) && Math.abs(Number(bias)) <= 100;
  if (isObject && Object.entries(made).every(isBias)) return made;
  throw new Error('Logit bias: token ids with numbers from -100 to 100 are expected, as in {"42": -100}.');
}

/**
 * A number of the settings.
 * @param {Figure} figure
 * @param {string} text
 */
function number({ label, from, to = Infinity, isWhole, help }, text) {
  if (!text.trim()) return undefined;
  const value = Number(text);
  if (value >= from && value <= to && (!isWhole || Number.isSafeInteger(value))) return value;
  throw new Error(`${label}: ${text} is not ${help.split(';')[0]}.`);
}

/** The fields that hold an answer to a form. @param {Settings} settings */
function form({ format, schema: text, regex, lark }) {
  if (format === 'schema') return { response_format: schema(text) };
  if (format === 'object') return { response_format: { type: 'json_object' } };
  if (format === 'regex') return { kernmill: { regex } };
  return format === 'lark' ? { kernmill: { lark } } : {};
}

/** @param {string} text */
function schema(text) {
  const made = json(text, 'JSON schema');
  if (typeof made !== 'object' || !made) {
    throw new Error('JSON schema: an object is expected, as in {"type": "object"}.');
  }
  return { type: 'json_schema', json_schema: { name: 'answer', strict: true, schema: made } };
}

/**
 * The fields of a request that the settings give. What is not set is left to the server.
 * @param {Settings} settings
 */
export function fields(settings) {
  const numbers = FIGURES.map((figure) => [figure.field ?? figure.name, number(figure, settings[figure.name])]);
  const { model, effort, stops: ends, bias, prediction, choice } = settings;
  const given = tools(settings.tools);
  return {
    model: model || undefined,
    ...Object.fromEntries(numbers),
    stop: stops(ends),
    logit_bias: biases(bias),
    reasoning_effort: effort || undefined,
    tools: given,
    tool_choice: (given && choice) || undefined,
    prediction: prediction ? { type: 'content', content: prediction } : undefined,
    ...form(settings),
  };
}

export class SettingsDialog {
  /**
   * @param {() => void} changed is called after each change by the user
   * @param {() => void} unlocked is called after another key is set
   */
  constructor(changed, unlocked) {
    this.dialog = /** @type {HTMLDialogElement} */ (byId('settings'));
    /** @type {Settings | undefined} */
    this.settings = undefined;
    byId('figures').append(...FIGURES.map((figure) => this.figure(figure)));
    byId('reset').addEventListener('click', () => {
      for (const { name } of FIGURES) this.clear(name);
      this.clear('stops');
      this.clear('bias');
    });
    for (const name of FIELDS) {
      this.field(name).addEventListener('input', () => {
        if (this.settings) this.settings[name] = this.field(name).value;
        this.check();
        changed();
      });
    }
    this.dialog.querySelector('.close')?.addEventListener('click', () => this.dialog.close());
    byId('open-settings').addEventListener('click', () => this.open());
    byId('example').addEventListener('click', () => {
      this.field('tools').value = JSON.stringify(EXAMPLE, null, 2);
      this.field('tools').dispatchEvent(new Event('input'));
    });
    byId('key-form').addEventListener('submit', (event) => {
      event.preventDefault();
      key.set(this.key.value.trim());
      this.dialog.close();
      unlocked();
    });
  }

  /** A field of a number, with its range, and a button that empties it. @param {Figure} figure */
  figure({ name, label, from, to, isWhole, help }) {
    const range = { min: from, max: to, step: isWhole ? 1 : 'any' };
    const about = { 'aria-describedby': `${name}-help ${name}-error`, placeholder: 'default' };
    const input = el('input', { id: name, type: 'number', inputmode: 'decimal', ...range, ...about });
    const reset = el('button', { type: 'button', class: 'quiet reset', onclick: () => this.clear(name) }, 'Reset');
    reset.setAttribute('aria-label', `Reset ${label}`);
    const notes = [
      el('p', { id: `${name}-help`, class: 'hint' }, help),
      el('p', { id: `${name}-error`, class: 'wrong' }),
    ];
    return el('div', { class: 'figure' }, el('label', { for: name }, label), input, reset, ...notes);
  }

  /** Leaves a field to the server. @param {Name} name */
  clear(name) {
    this.field(name).value = '';
    this.field(name).dispatchEvent(new Event('input'));
    this.field(name).focus();
  }

  /** @param {string} name */
  field(name) {
    return /** @type {HTMLInputElement} */ (byId(name));
  }

  get key() {
    return this.field('key');
  }

  /** Shows the settings of a conversation in the fields. @param {Settings} settings */
  use(settings) {
    this.settings = settings;
    for (const name of FIELDS) this.field(name).value = settings[name];
    if (!this.field('format').value) this.field('format').value = settings.format = 'text';
    this.offer();
    this.check();
  }

  open() {
    this.key.value = key.get();
    byId('key-help').classList.remove('wrong');
    byId('key-help').textContent = 'The key is kept until this tab closes, and goes to this server only.';
    if (!this.dialog.open) this.dialog.showModal();
  }

  /** Asks for the key, and says why. @param {string} reason */
  askKey(reason) {
    this.open();
    byId('key-help').classList.add('wrong');
    byId('key-help').textContent = `The server asks for a key: ${reason}`;
    this.key.focus();
    this.key.select();
  }

  /** Says beside the fields what is wrong in them. */
  check() {
    const settings = this.settings;
    if (!settings) return;
    for (const form of ['schema', 'regex', 'lark']) byId(`${form}-part`).hidden = settings.format !== form;
    /** @param {string} name @param {(text: string) => unknown} read */
    const say = (name, read) => {
      let wrong = '';
      try {
        read(this.field(name).value);
      } catch (error) {
        wrong = /** @type {Error} */ (error).message;
      }
      byId(`${name}-error`).textContent = wrong;
      this.field(name).setAttribute('aria-invalid', String(!!wrong));
    };
    for (const [name, read] of Object.entries(CHECKED)) say(name, read);
    for (const figure of FIGURES) {
      say(figure.name, (text) => number(figure, text || (this.field(figure.name).validity.badInput ? 'this' : '')));
    }
    say('schema', (text) => settings.format === 'schema' && schema(text));
  }

  /** Asks the server for its models. */
  async load() {
    this.list = await models();
    this.offer();
  }

  /** Offers the models. One that the server no longer has is replaced by the first. */
  offer() {
    const { settings, list } = this;
    if (!settings || !list) return;
    const select = this.field('model');
    select.replaceChildren(
      ...list.map(({ id, parent }) => el('option', { value: id }, parent ? `${id} (adapter of ${parent})` : id)),
    );
    if (!list.some(({ id }) => id === settings.model)) settings.model = list[0]?.id ?? '';
    select.value = settings.model;
  }
}
