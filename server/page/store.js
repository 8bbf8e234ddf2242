// Conversations in the browser's local storage, one entry each, so that two tabs do not overwrite each other.

/**
 * @typedef {{id: string, type: 'function', function: {name: string, arguments: string}}} ToolCall
 * @typedef {{message: string, detail: string, status: number}} Trouble
 * @typedef {{name: string, text: string}} Attachment
 * @typedef {object} Message
 * @property {'user' | 'assistant' | 'tool'} role
 * @property {string} content
 * @property {Attachment[]} [files] what the user attached
 * @property {(Message[] | null)[]} [versions] what else may begin here, to the end; null is what is shown
 * @property {string} [reasoning]
 * @property {number} [thought] seconds of reasoning
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
 * Settings are texts by their names; an empty one is up to the server.
 * @typedef {typeof DEFAULTS} Settings
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

const DEFAULTS = {
  model: '', effort: '', system: '', max: '', seed: '', stops: '',
  temperature: '', top_p: '', top_k: '', min_p: '',
  repetition_penalty: '', presence_penalty: '', frequency_penalty: '', bias: '',
  format: 'text', schema: '', regex: '', lark: '', prediction: '', tools: '', choice: '',
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

/** @param {any} file */
const isFile = (file) => typeof file?.name === 'string' && typeof file.text === 'string';

/** @param {any} value @param {(part: any) => boolean} holds */
const isList = (value, holds) => value === undefined || (Array.isArray(value) && value.every(holds));

/** Whether it is a message, with all that it holds. @param {any} message @returns {boolean} */
const isMessage = (message) =>
  ['user', 'assistant', 'tool'].includes(message?.role) &&
  typeof message.content === 'string' &&
  ['string', 'undefined'].includes(typeof message.reasoning) &&
  isList(message.tool_calls, isCall) &&
  isList(message.files, isFile) &&
  isList(message.versions, (tail) => tail === null || (tail?.length && isList(tail, isMessage))) &&
  (message.versions ?? [null]).filter((/** @type {any} */ tail) => tail === null).length === 1;

/**
 * A conversation from its stored form, or nothing if it is none.
 * @param {string | null} text
 * @returns {Conversation | undefined}
 */
function read(text) {
  try {
    const { id, title, updated, settings: kept, messages } = JSON.parse(text ?? '');
    if (typeof id !== 'string' || !Array.isArray(messages)) return undefined;
    const good = messages.filter(isMessage);
    return { id, title: String(title), updated: Number(updated) || 0, settings: settings(kept), messages: good };
  } catch {
    return undefined;
  }
}

/** Text as a search compares it. @param {string} text */
const plain = (text) => text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();

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

  /**
   * Conversations that have all words of a search in their title or messages, with the first message that has
   * the first word; all of them without any word.
   * @param {string} search
   */
  find(search) {
    const words = plain(search).split(/\s+/).filter(Boolean);
    if (!words.length) return this.list().map((conversation) => ({ conversation, at: -1 }));
    return this.list().flatMap((conversation) => {
      const { title, messages } = conversation;
      const texts = messages.map(({ content, files }) => {
        const names = (files ?? []).map(({ name }) => name);
        return plain([content, ...names].join(' '));
      });
      const all = [plain(title), ...texts].join('\n');
      if (!words.every((word) => all.includes(word))) return [];
      return [{ conversation, at: texts.findIndex((text) => text.includes(words[0])) }];
    });
  }

  /**
   * Takes in a file that an export made, as a conversation of its own. An error says what is wrong in it.
   * @param {string} text
   */
  take(text) {
    let given;
    try {
      given = JSON.parse(text);
    } catch {
      throw new Error('it is no JSON');
    }
    const { title, settings: kept, messages } = given ?? {};
    if (!Array.isArray(messages) || !messages.length) {
      throw new Error('it has no list of messages, as Export writes it');
    }
    const wrong = messages.findIndex((message) => !isMessage(message));
    if (wrong >= 0) throw new Error(`message ${wrong + 1} of it is none that Export writes`);
    const name = typeof title === 'string' && title.trim() ? title.trim().slice(0, 100) : 'Imported';
    const made = { ...this.fresh(), title: name, settings: settings(kept), messages };
    this.all.set(made.id, made);
    this.write(PREFIX + made.id, made);
    return made;
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
