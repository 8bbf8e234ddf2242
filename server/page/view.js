// How messages look. A view is made of a message, and made again from the grown message while it streams.

import { button, copy, el, rate, size, time } from './dom.js';
import { whole } from './files.js';
import { Markdown, code } from './markdown.js';
import { drawn } from './rich.js';

/**
 * @typedef {import('./store.js').Message} Message
 * @typedef {object} Actions
 * @property {(text: string) => void} edit asks anew from this message on, with another text
 * @property {() => void} retry makes this answer again
 * @property {() => void} [resume] goes on in this answer, if it is the last message and may have more text
 * @property {(results: string[]) => void} answer gives the results of the calls
 * @property {(at: number) => void} turn shows another version of what begins here
 */

/** Ends of answers that can be gone on in. */
const CUT = ['length', 'stopped'];

/** What an unusual end of an answer means. @type {Record<string, string>} */
const ENDS = {
  length: 'The answer reached the limit of its tokens.',
  content_filter: 'The answer was held back by a filter.',
  stopped: 'You stopped the answer.',
};

/** @param {KeyboardEvent} event */
export const isSend = (event) => event.key === 'Enter' && !event.shiftKey && !event.isComposing;

/** JSON with line breaks, or the text as it is if it is none. @param {string} text */
function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/**
 * What switches between the versions that begin with a message; nothing if there is one only.
 * @param {Message} message
 * @param {Actions} actions
 */
function versions({ versions: all = [] }, actions) {
  if (all.length < 2) return undefined;
  const at = all.indexOf(null);
  /** @param {string} label @param {string} name @param {number} to */
  const turn = (label, name, to) => {
    const made = button(label, () => actions.turn(to), undefined, name);
    made.disabled = !(to in all);
    return made;
  };
  const place = el('span', {}, `${at + 1}/${all.length}`);
  const group = { class: 'versions', role: 'group', 'aria-label': `Version ${at + 1} of ${all.length}` };
  return el('span', group, turn('<', 'Version before', at - 1), place, turn('>', 'Version after', at + 1));
}

/** A file that the user attached, folded. @param {import('./store.js').Attachment} file */
function fileView({ name, text }) {
  const about = el('span', { class: 'hint' }, ` ${size(new Blob([text]).size)}`);
  const made = el('details', { class: 'file' }, el('summary', {}, el('span', { class: 'name' }, name), about));
  // A long text is put in the page only if somebody looks.
  made.addEventListener('toggle', () => made.append(el('pre', { tabindex: 0 }, text)), { once: true });
  return made;
}

/**
 * A message of the user.
 * @param {Message} message
 * @param {Actions} actions
 */
export function userView(message, actions) {
  const files = (message.files ?? []).map(fileView);
  const bubble = el('div', { class: 'bubble' }, ...files, message.content && el('div', {}, message.content));
  const row = el('div', { class: 'actions' });
  const made = el('article', { class: 'user', 'aria-label': 'You' }, bubble, row);
  const edit = button('Edit', () => {
    const field = el('textarea', { 'aria-label': 'Change the message' });
    field.value = message.content;
    const send = () => (field.value.trim() || files.length) && actions.edit(field.value.trim());
    const cancel = () => {
      form.replaceWith(bubble, row);
      edit.focus();
    };
    const buttons = el('div', { class: 'row' }, el('span', { class: 'hint' }, 'What was asked before is kept.'));
    const ask = el('button', { type: 'button', class: 'main', onclick: send }, 'Ask again');
    buttons.append(button('Cancel', cancel), ask);
    const form = el('div', { class: 'edit' }, field, buttons);
    field.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') {
        event.stopPropagation();
        cancel();
      } else if (isSend(event)) {
        event.preventDefault();
        send();
      }
    });
    bubble.replaceWith(form);
    row.remove();
    field.focus();
  });
  row.append(edit, button('Copy', () => copy(whole(message)), 'Copied', 'Copy message'));
  row.append(versions(message, actions) ?? '');
  return made;
}

/** A tool's name above a text. @param {string} what @param {string} name @param {string} text */
const card = (what, name, text) =>
  el('div', { class: 'call' }, el('h2', {}, `${what} `, el('code', {}, name)), el('pre', { tabindex: 0 }, text));

/**
 * What a tool gave back.
 * @param {Message} message
 */
export const toolView = (message) =>
  el(
    'article',
    { class: 'tool', 'aria-label': `Result of ${message.name}` },
    card('Result of', message.name ?? 'the tool', message.content),
  );

/** An answer of the model, which may still be growing. */
export class AnswerView {
  /**
   * @param {Message} message
   * @param {Actions} actions
   * @param {boolean} isLive whether it is growing
   */
  constructor(message, actions, isLive) {
    this.message = message;
    this.actions = actions;
    this.body = el('div', { class: 'markdown' });
    this.markdown = new Markdown(this.body, drawn);
    const thoughts = el('div', { class: 'markdown' });
    this.thoughts = new Markdown(thoughts, drawn);
    this.summary = el('summary', {}, 'Reasoning');
    this.details = el('details', { class: 'reasoning', hidden: true }, this.summary, thoughts);
    this.calls = el('div', { class: 'calls' });
    this.end = el('div', { class: 'end' });
    this.wait = el('p', { class: 'wait', hidden: true }, 'Waiting for the first token');
    this.element = el('article', { class: 'answer', 'aria-label': 'Answer' });
    this.element.append(this.details, this.wait, this.body, this.calls, this.end);
    this.element.setAttribute('aria-busy', String(isLive));
    this.update(isLive);
    if (!isLive) this.finish(false);
  }

  /** Shows the message as it is now. @param {boolean} isLive */
  update(isLive) {
    const { message } = this;
    const hasBegun = !!message.content || !!message.tool_calls?.length;
    this.wait.hidden = !isLive || hasBegun || !!message.reasoning;
    if (message.reasoning) {
      // Reasoning is open until the answer begins; after that it is as the reader wants it.
      if (this.details.hidden) this.details.open = isLive && !hasBegun;
      else if (hasBegun && !this.hasBegun) this.details.open = false;
      this.details.hidden = false;
      const { thought } = message;
      this.summary.textContent = Number.isFinite(thought) ? `Reasoned for ${time(thought ?? 0)}` : 'Reasoning';
      this.thoughts.set(message.reasoning, isLive && !hasBegun);
    }
    this.hasBegun = hasBegun;
    if (message.json) this.body.replaceChildren(...(message.content ? [code(message.content, 'json', drawn)] : []));
    else this.markdown.set(message.content, isLive);
    this.calls.replaceChildren(
      ...(message.tool_calls ?? []).map((call) => card('Calls', call.function.name, pretty(call.function.arguments))),
    );
  }

  /**
   * Shows the end: figures, what can be done, what went wrong.
   * @param {boolean} isOpen whether calls await results
   */
  finish(isOpen) {
    const { message, actions } = this;
    this.update(false);
    this.element.setAttribute('aria-busy', 'false');
    if (!message.content && message.reasoning && message.finish === 'stopped') this.details.open = true;
    this.end.replaceChildren();
    if (isOpen) this.askResults();
    const end = ENDS[message.finish ?? ''];
    if (end) this.end.append(el('p', { class: 'hint' }, end));
    const { trouble } = message;
    const isCut = CUT.includes(message.finish ?? '') && !!message.content;
    const resume = isCut && !message.json && !message.tool_calls?.length ? actions.resume : undefined;
    if (trouble) {
      const said = [el('p', {}, trouble.message), el('p', { class: 'hint' }, trouble.detail)];
      const retry = button('Try again', resume ?? actions.retry);
      this.end.append(el('div', { class: 'trouble', role: 'alert' }, ...said, retry));
    }
    const row = el('div', { class: 'actions' });
    if (message.content) row.append(button('Copy', () => copy(message.content), 'Copied', 'Copy answer'));
    if (!trouble && resume) row.append(button('Continue', resume, undefined, 'Continue this answer'));
    if (!trouble) row.append(button('Retry', actions.retry, undefined, 'Retry: make this answer again'));
    row.append(versions(message, actions) ?? '');
    this.end.append(el('div', { class: 'figures' }, row, el('span', { class: 'hint numbers' }, this.figures())));
  }

  /** Tokens, speed and what was cached, as far as the server said it. */
  figures() {
    const { usage, kernmill, model } = this.message;
    const parts = [];
    if (usage) {
      const thought = usage.completion_tokens_details?.reasoning_tokens;
      parts.push(`${usage.completion_tokens} tokens${thought ? `, ${thought} of reasoning` : ''}`);
    }
    if (Number.isFinite(kernmill?.tokens_per_second)) parts.push(`${rate(kernmill.tokens_per_second)} tokens/s`);
    if (Number.isFinite(kernmill?.first_token_seconds)) parts.push(`first after ${time(kernmill.first_token_seconds)}`);
    if (usage) parts.push(`prompt ${usage.prompt_tokens}, ${usage.prompt_tokens_details?.cached_tokens ?? 0} cached`);
    if (Number.isFinite(kernmill?.seed)) parts.push(`seed ${kernmill.seed}`);
    if (model && parts.length) parts.push(model);
    return parts.join(' · ');
  }

  /** Puts a field below each call, and a button that sends what was typed. */
  askResults() {
    const fields = [...this.calls.children].map((card, n) => {
      const name = this.message.tool_calls?.[n].function.name ?? '';
      const label = { 'aria-label': `Result of ${name}`, placeholder: 'Result of the tool' };
      const field = el('textarea', { rows: 2, class: 'mono result', ...label });
      card.append(field);
      return field;
    });
    const send = () => this.actions.answer(fields.map((field) => field.value));
    const several = fields.length > 1 ? 'Send results' : 'Send result';
    const give = el('button', { type: 'button', class: 'main', onclick: send }, several);
    this.calls.append(el('div', { class: 'row' }, give));
    for (const field of fields) {
      field.addEventListener('keydown', (event) => {
        if (!isSend(event)) return;
        event.preventDefault();
        send();
      });
    }
  }
}
