// Conversations in the browser's local storage, one entry each, so that two tabs do not overwrite each other.

/**
 * @typedef {{id: string, type: 'function', function: {name: string, arguments: string}}} ToolCall
 * @typedef {{message: string, detail: string, status: number}} Trouble
 * @typedef {object} Message
 * @property {'user' | 'assistant' | 'tool'} role
 * @property {string} content
 * @property {string} [reasoning]
 * @property {ToolCall[]} [tool_calls]
 * @property {string} [tool_call_id]
 * @property {string} [name] the tool that a result is of
 * @property {string} [model]
 * @property {boolean} [json] whether JSON was asked for
 * @property {string} [finish] why the answer ended; `stopped` by hand
 * @property {any} [usage]
 * @property {any} [kernmill]
 * @property {Trouble} [trouble]
 *
 * @typedef {object} Settings
 * @property {string} model
 * @property {string} effort empty for the server's default, as all of these
 * @property {string} system
 * @property {string} max
 * @property {string} temperature
 * @property {string} seed
 * @property {string} tools
 * @property {string} format `text`, `object` or `schema`
 * @property {string} schema
 *
 * @typedef {object} Conversation
 * @property {string} id
 * @property {string} title
 * @property {number} updated milliseconds since 1970
 * @property {Settings} settings
 * @property {Message[]} messages
 */

const PREFIX = 'kernmill.chat.';
const SETTINGS = 'kernmill.settings';
const SHOWN = 'kernmill.shown';

/** What a `Storage` does, where pages may keep nothing. Its own properties are the entries. */
class Memory {
  /** @param {string} name @returns {string | null} */
  getItem(name) {
    return /** @type {any} */ (this)[name] ?? null;
  }
  /** @param {string} name @param {string} value */
  setItem(name, value) {
    Object.assign(this, { [name]: value });
  }
  /** @param {string} name */
  removeItem(name) {
    delete (/** @type {any} */ (this)[name]);
  }
}

/** @param {'localStorage' | 'sessionStorage'} kind */
function open(kind) {
  try {
    return window[kind];
  } catch {
    return new Memory();
  }
}

/** Kept until it is deleted. */
export const local = open('localStorage');
/** Kept as long as the tab. */
export const session = open('sessionStorage');

/** @type {Settings} */
const DEFAULTS = {
  model: '', effort: '', system: '', max: '', temperature: '', seed: '', tools: '', format: 'text', schema: '',
};

/**
 * The settings in what was stored; what is no text is left out.
 * @param {any} stored
 * @returns {Settings}
 */
function settings(stored) {
  const kept = Object.keys(DEFAULTS).filter((name) => typeof stored?.[name] === 'string');
  return { ...DEFAULTS, ...Object.fromEntries(kept.map((name) => [name, stored[name]])) };
}

/** @param {any} call */
const isCall = (call) =>
  [call?.id, call?.function?.name, call?.function?.arguments].every((part) => typeof part === 'string');

/**
 * A conversation from its stored form, or nothing if it is none.
 * @param {string | null} text
 * @returns {Conversation | undefined}
 */
function read(text) {
  try {
    const stored = JSON.parse(text ?? '');
    if (typeof stored.id !== 'string' || !Array.isArray(stored.messages)) return undefined;
    const messages = stored.messages.filter(
      (/** @type {any} */ message) =>
        ['user', 'assistant', 'tool'].includes(message?.role) &&
        typeof message.content === 'string' &&
        (message.tool_calls === undefined || (Array.isArray(message.tool_calls) && message.tool_calls.every(isCall))),
    );
    const { id, title, updated } = stored;
    return { id, title: String(title), updated: Number(updated) || 0, settings: settings(stored.settings), messages };
  } catch {
    return undefined;
  }
}

export class Store {
  /** @param {(text: string) => void} warn is told once when the storage is full or forbidden */
  constructor(warn) {
    this.warn = warn;
    this.hasWarned = false;
    /** @type {Map<string, Conversation>} */
    this.all = new Map();
    for (const name of Object.keys(local).filter((name) => name.startsWith(PREFIX))) {
      const found = read(local.getItem(name));
      if (found) this.all.set(found.id, found);
    }
  }

  /** All conversations, the latest first. */
  list() {
    return [...this.all.values()].sort((a, b) => b.updated - a.updated);
  }

  /** @returns {Conversation} one that is not kept before it has a message; its settings are the last ones */
  fresh() {
    let last;
    try {
      last = JSON.parse(local.getItem(SETTINGS) ?? '{}');
    } catch {
      last = {};
    }
    const random = crypto.getRandomValues(new Uint32Array(3));
    return { id: random.join('-'), title: 'New chat', updated: Date.now(), settings: settings(last), messages: [] };
  }

  /** @param {Conversation} conversation */
  save(conversation) {
    this.write(SETTINGS, conversation.settings);
    if (!conversation.messages.length) return;
    this.all.set(conversation.id, conversation);
    this.write(PREFIX + conversation.id, conversation);
  }

  /** @param {string} name @param {object} value */
  write(name, value) {
    try {
      local.setItem(name, JSON.stringify(value));
      this.hasWarned = false;
    } catch {
      if (!this.hasWarned) {
        this.warn('The browser keeps no more: its storage is full. Export or delete conversations to make room.');
      }
      this.hasWarned = true;
    }
  }

  /** @param {string} id */
  remove(id) {
    this.all.delete(id);
    local.removeItem(PREFIX + id);
  }

  /**
   * Takes over what another tab stored.
   * @param {StorageEvent} event
   * @returns {string | undefined} id of the conversation
   */
  changed(event) {
    if (!event.key?.startsWith(PREFIX)) return undefined;
    const id = event.key.slice(PREFIX.length);
    const found = read(event.newValue);
    if (found) this.all.set(id, found);
    else this.all.delete(id);
    return id;
  }

  /** The conversation that this tab showed before it was loaded again. */
  shown() {
    return this.all.get(session.getItem(SHOWN) ?? '');
  }

  /** @param {string} id */
  show(id) {
    session.setItem(SHOWN, id);
  }
}
