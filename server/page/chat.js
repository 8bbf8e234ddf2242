// Conversations with the model: asking, receiving, stopping, and showing all of it.

import * as api from './api.js';
import { el } from './dom.js';
import { fields } from './settings.js';
import { AnswerView, toolView, userView } from './view.js';

/**
 * @typedef {import('./store.js').Message} Message
 * @typedef {import('./store.js').Conversation} Conversation
 * @typedef {object} Turn
 * @property {AbortController} controller
 * @property {Message} message
 * @property {AnswerView} [view]
 * @property {Promise<void>} [ended]
 * @property {number} saved when the conversation was saved
 * @property {number} said how much of the answer was handed to screen readers
 * @property {boolean} [waits] whether a frame is on its way
 * @property {boolean} [isStale] whether more came since
 */

/** Milliseconds between saves of an answer that streams. */
const SAVE = 2000;
/** Pixels from the end at which the view follows an answer. */
const NEAR = 60;

/**
 * The messages of a request. Calls without a result are left out, as the API wants a result for every call. An
 * answer of which nothing came is left out, too.
 * @param {Conversation} conversation
 */
function messages({ messages, settings }) {
  const made = /** @type {any[]} */ (settings.system.trim() ? [{ role: 'system', content: settings.system }] : []);
  messages.forEach((message, n) => {
    const { role, content, reasoning } = message;
    if (role === 'user') made.push({ role, content });
    if (role === 'tool') made.push({ role, content, tool_call_id: message.tool_call_id });
    if (role !== 'assistant') return;
    const results = new Set();
    for (let next = n + 1; messages[next]?.role === 'tool'; next += 1) results.add(messages[next].tool_call_id);
    const calls = (message.tool_calls ?? []).filter(({ id }) => results.has(id));
    if (!content && !reasoning && !calls.length) return;
    made.push({
      role,
      content: content || (calls.length ? null : ''),
      reasoning_content: reasoning || undefined,
      tool_calls: calls.length ? calls : undefined,
    });
  });
  return made;
}

/**
 * Adds a chunk to the message that streams.
 * @param {Message} message
 * @param {any} chunk
 */
function add(message, chunk) {
  const choice = chunk.choices?.[0];
  const { content, reasoning_content, reasoning, tool_calls } = choice?.delta ?? {};
  const thought = reasoning_content ?? reasoning;
  if (typeof content === 'string') message.content += content;
  if (typeof thought === 'string') message.reasoning = (message.reasoning ?? '') + thought;
  for (const part of Array.isArray(tool_calls) ? tool_calls : []) {
    const calls = (message.tool_calls ??= []);
    const at = calls[part.index] ? part.index : calls.length;
    const call = (calls[at] ??= { id: '', type: 'function', function: { name: '', arguments: '' } });
    call.id ||= String(part.id ?? `call_${at}`);
    call.function.name += part.function?.name ?? '';
    call.function.arguments += part.function?.arguments ?? '';
  }
  if (choice?.finish_reason) message.finish = String(choice.finish_reason);
  if (chunk.usage) message.usage = chunk.usage;
  if (chunk.kernmill) message.kernmill = chunk.kernmill;
}

export class Chat {
  /**
   * @param {object} parts
   * @param {HTMLElement} parts.log what scrolls
   * @param {HTMLElement} parts.list where messages go
   * @param {HTMLElement} parts.live what is read aloud
   * @param {import('./store.js').Store} parts.store
   * @param {() => void} parts.changed is called when a turn begins or ends
   * @param {(reason: string) => void} parts.locked is called when the server asks for a key
   * @param {(reason: string) => void} parts.refused is called when the settings cannot be sent
   */
  constructor({ log, list, live, store, changed, locked, refused }) {
    this.log = log;
    this.list = list;
    this.live = live;
    this.store = store;
    this.changed = changed;
    this.locked = locked;
    this.refused = refused;
    /** @type {Map<string, Turn>} turns by the ids of their conversations */
    this.turns = new Map();
    /** @type {Conversation} */
    this.shown = store.fresh();
  }

  get isBusy() {
    return this.turns.has(this.shown.id);
  }

  /** Shows a conversation. @param {Conversation} conversation */
  show(conversation) {
    this.shown = conversation;
    const turn = this.turns.get(conversation.id);
    const { messages } = conversation;
    const views = messages.map((message, n) => {
      const actions = this.actions(conversation, n);
      if (message.role === 'user') return userView(message, actions);
      if (message.role === 'tool') return toolView(message);
      const isLive = turn?.message === message;
      const view = new AnswerView(message, actions, isLive);
      if (isLive) turn.view = view;
      else if (n === messages.length - 1) view.finish(this.awaits(message));
      return view.element;
    });
    if (!views.length) views.push(el('p', { class: 'empty' }, 'What would you like to know?'));
    this.list.replaceChildren(...views);
    this.log.scrollTop = this.log.scrollHeight;
  }

  /** Whether an answer has calls that wait for results. @param {Message} message */
  awaits(message) {
    return !!message.tool_calls?.length && message.finish === 'tool_calls' && !message.trouble;
  }

  /**
   * What can be done with a message. All of it replaces what follows.
   * @param {Conversation} conversation
   * @param {number} n
   * @returns {import('./view.js').Actions}
   */
  actions(conversation, n) {
    /** @param {number} keep @param {Message[]} [more] */
    const again = async (keep, more = []) => {
      const turn = this.turns.get(conversation.id);
      turn?.controller.abort();
      await turn?.ended;
      this.ask(conversation, [...conversation.messages.slice(0, keep), ...more]);
    };
    return {
      edit: (content) => again(n, [{ role: 'user', content }]),
      retry: () => again(n),
      answer: (results) => {
        const calls = conversation.messages[n].tool_calls ?? [];
        const result = (/** @type {string} */ content, /** @type {number} */ at) => {
          const { id, function: { name } } = calls[at];
          return /** @type {Message} */ ({ role: 'tool', content, tool_call_id: id, name });
        };
        again(n + 1, results.map(result));
      },
    };
  }

  /** Sends a message of the user; says whether it went. @param {string} content */
  send(content) {
    if (this.isBusy) return false;
    const { shown } = this;
    const isFirst = !shown.messages.length;
    return this.ask(shown, [...shown.messages, { role: 'user', content }], () => {
      if (isFirst && shown.title === 'New chat') shown.title = content.replace(/\s+/g, ' ').slice(0, 60);
    });
  }

  /** Ends the answer; what came of it stays. */
  stop() {
    this.turns.get(this.shown.id)?.controller.abort();
  }

  /** Asks once more if the last answer failed for want of a key. */
  unlocked() {
    const at = this.shown.messages.length - 1;
    if (this.shown.messages[at]?.trouble?.status === 401) this.actions(this.shown, at).retry();
  }

  /**
   * Asks for an answer to these messages, which replace those of the conversation.
   * @param {Conversation} conversation
   * @param {Message[]} before
   * @param {() => void} [ready] is called when the request can be made
   */
  ask(conversation, before, ready) {
    const { settings } = conversation;
    let body;
    try {
      const stream = { stream: true, stream_options: { include_usage: true } };
      body = { ...fields(settings), messages: messages({ ...conversation, messages: before }), ...stream };
    } catch (error) {
      this.refused(/** @type {Error} */ (error).message);
      return false;
    }
    ready?.();
    /** @type {Message} */
    const message = { role: 'assistant', content: '', model: settings.model };
    if (settings.format !== 'text') message.json = true;
    conversation.messages = [...before, message];
    conversation.updated = Date.now();
    /** @type {Turn} */
    const turn = { controller: new AbortController(), message, saved: Date.now(), said: 0 };
    this.turns.set(conversation.id, turn);
    this.store.save(conversation);
    this.live.replaceChildren();
    if (this.shown === conversation) this.show(conversation);
    this.changed();
    turn.ended = this.receive(conversation, turn, body);
    return true;
  }

  /**
   * Takes an answer in until it ends, in whatever way.
   * @param {Conversation} conversation
   * @param {Turn} turn
   * @param {object} body
   */
  async receive(conversation, turn, body) {
    const { message, controller } = turn;
    try {
      for await (const chunk of api.chat(body, controller.signal)) {
        add(message, chunk);
        this.draw(conversation, turn);
        if (Date.now() - turn.saved > SAVE) {
          turn.saved = Date.now();
          this.store.save(conversation);
        }
      }
    } catch (error) {
      if (controller.signal.aborted) message.finish = 'stopped';
      else {
        const { message: text, detail = '', status = 0 } = /** @type {api.Failure} */ (error);
        message.trouble = { message: text, detail, status };
      }
    }
    this.turns.delete(conversation.id);
    // A conversation that was deleted meanwhile stays so.
    if (this.store.all.has(conversation.id)) this.store.save(conversation);
    if (this.shown === conversation) {
      const isNear = this.isNear();
      turn.view?.finish(this.awaits(message));
      this.say(turn, true);
      if (isNear) this.log.scrollTop = this.log.scrollHeight;
    }
    this.changed();
    if (message.trouble?.status === 401 && this.shown === conversation) this.locked(message.trouble.message);
  }

  isNear() {
    return this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < NEAR;
  }

  /**
   * Draws what came, once per frame at most, and seldom if drawing is slow.
   * @param {Conversation} conversation
   * @param {Turn} turn
   */
  draw(conversation, turn) {
    turn.isStale = true;
    if (turn.waits) return;
    turn.waits = true;
    turn.isStale = false;
    requestAnimationFrame(() => {
      const before = performance.now();
      if (this.shown === conversation && this.turns.get(conversation.id) === turn) {
        const isNear = this.isNear();
        turn.view?.update(true);
        this.say(turn, false);
        if (isNear) this.log.scrollTop = this.log.scrollHeight;
      }
      setTimeout(() => {
        turn.waits = false;
        if (turn.isStale) this.draw(conversation, turn);
      }, 4 * (performance.now() - before));
    });
  }

  /**
   * Hands whole sentences to screen readers, not tokens.
   * @param {Turn} turn
   * @param {boolean} isEnd
   */
  say(turn, isEnd) {
    const rest = turn.message.content.slice(turn.said);
    const end = isEnd ? rest.length : Math.max(rest.lastIndexOf('. '), rest.lastIndexOf('\n')) + 1;
    if (end > 0) this.live.append(el('p', {}, rest.slice(0, end)));
    turn.said += end;
    if (isEnd && !turn.message.content) this.live.append(el('p', {}, 'The answer has ended.'));
    // What was read aloud would be found twice in the page otherwise.
    if (isEnd) setTimeout(() => !this.turns.size && this.live.replaceChildren(), 5000);
  }
}
