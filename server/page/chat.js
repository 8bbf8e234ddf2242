// Conversations with the model: asking, receiving, stopping, and showing all of it.

import * as api from './api.js';
import { el } from './dom.js';
import { whole } from './files.js';
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
 * @property {number} [thinks] when its reasoning began
 * @property {Cut} [cut] what was known of the answer when it was cut, if it is gone on in
 */

/**
 * @typedef {object} Cut
 * @property {string} [finish]
 * @property {any} [usage]
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
    if (role === 'user') made.push({ role, content: whole(message) });
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
 * The versions of what follows a message when a new one is made: the messages so far are kept in their place.
 * An answer of which nothing came is not.
 * @param {Message[]} tail
 */
function versions([head, ...rest]) {
  if (!head) return undefined;
  const { versions: all = [null], ...bare } = head;
  const isEmpty = head.role === 'assistant' && !head.content && !head.reasoning && !head.tool_calls?.length;
  const kept = all.flatMap((tail) => (tail ? [tail] : isEmpty ? [] : [[bare, ...rest]]));
  return kept.length ? [...kept, null] : undefined;
}

/**
 * Tokens of an answer, with those of it that came before it was cut.
 * @param {any} usage
 * @param {any} before
 */
function tokens(usage, before) {
  if (!before) return usage;
  const thought = (/** @type {any} */ part) => part.completion_tokens_details?.reasoning_tokens ?? 0;
  return {
    ...usage,
    completion_tokens: usage.completion_tokens + before.completion_tokens,
    completion_tokens_details: { reasoning_tokens: thought(usage) + thought(before) },
  };
}

/**
 * Adds a chunk to the message that streams.
 * @param {Turn} turn
 * @param {any} chunk
 */
function add(turn, chunk) {
  const { message } = turn;
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
  if (typeof thought === 'string' && thought) turn.thinks ??= performance.now();
  const isThought = turn.thinks !== undefined && message.thought === undefined;
  if (isThought && (message.content || message.tool_calls || choice?.finish_reason)) {
    message.thought = (performance.now() - (turn.thinks ?? 0)) / 1000;
  }
  if (choice?.finish_reason) message.finish = String(choice.finish_reason);
  if (chunk.usage) message.usage = tokens(chunk.usage, turn.cut?.usage);
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
    /** Whether the view follows what grows at the end, and where it was last. */
    this.follows = true;
    this.top = 0;
    log.addEventListener('scroll', () => {
      const isNear = log.scrollHeight - log.scrollTop - log.clientHeight < NEAR;
      this.follows = isNear || (this.follows && log.scrollTop >= this.top);
      this.top = log.scrollTop;
    });
    const grown = new ResizeObserver(() => {
      if (this.follows) log.scrollTop = log.scrollHeight;
    });
    grown.observe(list);
    grown.observe(log);
  }

  get isBusy() {
    return this.turns.has(this.shown.id);
  }

  /**
   * Shows a conversation, from its end or from a message.
   * @param {Conversation} conversation
   * @param {number} [at]
   */
  show(conversation, at = -1) {
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
    this.follows = at < 0;
    if (this.follows) this.log.scrollTop = this.log.scrollHeight;
    else views[at]?.scrollIntoView({ block: 'nearest' });
  }

  /** Whether an answer has calls that wait for results. @param {Message} message */
  awaits(message) {
    return !!message.tool_calls?.length && message.finish === 'tool_calls' && !message.trouble;
  }

  /**
   * What can be done with a message. What followed it is kept as a version, but for a tool's results.
   * @param {Conversation} conversation
   * @param {number} n
   * @returns {import('./view.js').Actions}
   */
  actions(conversation, n) {
    /** @param {number} keep @param {(tail: Message[]) => Message[]} make what comes in place of the others */
    const again = async (keep, make) => {
      const turn = this.turns.get(conversation.id);
      turn?.controller.abort();
      await turn?.ended;
      const { messages } = conversation;
      const more = make(messages.slice(keep));
      const others = more.length ? undefined : versions(messages.slice(keep));
      this.ask(conversation, [...messages.slice(0, keep), ...more], others);
    };
    const isLast = n === conversation.messages.length - 1;
    return {
      resume: isLast && conversation.settings.format === 'text' ? () => this.resume(conversation) : undefined,
      edit: (content) => {
        const { files } = conversation.messages[n];
        again(n, (tail) => [{ role: 'user', content, files, versions: versions(tail) }]);
      },
      retry: () => again(n, () => []),
      turn: (at) => {
        const { messages } = conversation;
        const all = messages[n].versions;
        const next = all?.[at];
        if (!next) return;
        delete messages[n].versions;
        const shown = messages.slice(n);
        next[0].versions = all.map((tail, place) => (place === at ? null : tail ?? shown));
        conversation.messages = [...messages.slice(0, n), ...next];
        this.store.save(conversation);
        this.show(conversation, n);
        /** @type {HTMLElement | null} */ (this.list.children[n].querySelector('.versions :enabled'))?.focus();
      },
      answer: (results) => {
        const calls = conversation.messages[n].tool_calls ?? [];
        const result = (/** @type {string} */ content, /** @type {number} */ at) => {
          const { id, function: { name } } = calls[at];
          return /** @type {Message} */ ({ role: 'tool', content, tool_call_id: id, name });
        };
        again(n + 1, () => results.map(result));
      },
    };
  }

  /**
   * Sends a message of the user; says whether it went.
   * @param {string} content
   * @param {import('./store.js').Attachment[]} files
   */
  send(content, files) {
    if (this.isBusy) return false;
    const { shown } = this;
    const title = (content || files[0].name).replace(/\s+/g, ' ').slice(0, 60);
    const isNew = !shown.messages.length && shown.title === 'New chat';
    /** @type {Message} */
    const message = files.length ? { role: 'user', content, files } : { role: 'user', content };
    const hasGone = this.ask(shown, [...shown.messages, message]);
    if (hasGone && isNew) {
      shown.title = title;
      this.store.save(shown);
      this.changed();
    }
    return hasGone;
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
   * @param {Message['versions']} [versions] other answers
   */
  ask(conversation, before, versions) {
    const { settings } = conversation;
    const body = this.body({ ...conversation, messages: before });
    if (!body) return false;
    /** @type {Message} */
    const message = { role: 'assistant', content: '', model: settings.model };
    if (['object', 'schema'].includes(settings.format)) message.json = true;
    if (versions) message.versions = versions;
    conversation.messages = [...before, message];
    this.begin(conversation, message, body);
    return true;
  }

  /**
   * Goes on in the last answer, which was cut.
   * @param {Conversation} conversation
   */
  resume(conversation) {
    const message = conversation.messages[conversation.messages.length - 1];
    const body = !this.turns.has(conversation.id) && this.body(conversation);
    if (!body) return;
    // What goes on in a text is text: no form, and no call that must come.
    for (const name of ['response_format', 'kernmill', 'tool_choice', 'prediction']) delete body[name];
    const { finish, usage } = message;
    delete message.finish;
    delete message.trouble;
    const goesOn = { continue_final_message: true, add_generation_prompt: false };
    this.begin(conversation, message, { ...body, ...goesOn }, { finish, usage });
  }

  /**
   * The request for an answer to a conversation, or nothing if the settings cannot be sent.
   * @param {Conversation} conversation
   * @returns {any}
   */
  body(conversation) {
    try {
      const stream = { stream: true, stream_options: { include_usage: true } };
      return { ...fields(conversation.settings), messages: messages(conversation), ...stream };
    } catch (error) {
      this.refused(/** @type {Error} */ (error).message);
      return undefined;
    }
  }

  /**
   * Asks for an answer, and takes it in as this message.
   * @param {Conversation} conversation
   * @param {Message} message
   * @param {object} body
   * @param {Cut} [cut]
   */
  begin(conversation, message, body, cut) {
    conversation.updated = Date.now();
    const said = message.content.length;
    /** @type {Turn} */
    const turn = { controller: new AbortController(), message, saved: Date.now(), said, cut };
    this.turns.set(conversation.id, turn);
    this.store.save(conversation);
    this.live.replaceChildren();
    if (this.shown === conversation) this.show(conversation);
    this.changed();
    turn.ended = this.receive(conversation, turn, body);
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
        add(turn, chunk);
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
        // What was cut can still be gone on in.
        if (turn.cut) message.finish = turn.cut.finish;
      }
    }
    this.turns.delete(conversation.id);
    // A conversation that was deleted meanwhile stays so.
    if (this.store.all.has(conversation.id)) this.store.save(conversation);
    if (this.shown === conversation) {
      turn.view?.finish(this.awaits(message));
      this.say(turn, true);
    }
    this.changed();
    if (message.trouble?.status === 401 && this.shown === conversation) this.locked(message.trouble.message);
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
        turn.view?.update(true);
        this.say(turn, false);
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
