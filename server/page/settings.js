// Settings of a conversation: the dialog, the choice of the model, and what of it goes into a request.

import { key, models } from './api.js';
import { byId, el } from './dom.js';

/** @typedef {import('./store.js').Settings} Settings */

/** Fields that hold text, by their ids, which are the names in the settings. */
const FIELDS = /** @type {const} */ (
  ['model', 'effort', 'system', 'max', 'temperature', 'seed', 'format', 'schema', 'tools']
);

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

/** @param {Settings} settings */
function format({ format, schema: text }) {
  if (format === 'text') return undefined;
  return format === 'schema' ? schema(text) : { type: 'json_object' };
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
  const number = (/** @type {string} */ text) => (text.trim() === '' ? undefined : Number(text));
  return {
    model: settings.model || undefined,
    temperature: number(settings.temperature),
    max_completion_tokens: number(settings.max),
    seed: number(settings.seed),
    reasoning_effort: settings.effort || undefined,
    tools: tools(settings.tools),
    response_format: format(settings),
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
    byId('schema-part').hidden = settings.format !== 'schema';
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
    say('tools', tools);
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
