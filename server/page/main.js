// The page: the list of conversations, the message field, colours, keys, and what ties the parts together.

import { Chat } from './chat.js';
import { button, byId, el } from './dom.js';
import { Attachments, save } from './files.js';
import { SettingsDialog } from './settings.js';
import { Status } from './status.js';
import { Store, local } from './store.js';
import { isSend } from './view.js';

/** @typedef {import('./store.js').Conversation} Conversation */

const input = /** @type {HTMLTextAreaElement} */ (byId('input'));
const search = /** @type {HTMLInputElement} */ (byId('search'));

/** Goes to the message field, unless that would bring up a keyboard on the screen. */
function focus() {
  if (!matchMedia('(pointer: coarse)').matches) input.focus();
}

/**
 * Tells something in a line above the message field, with a button at most.
 * @param {string} text
 * @param {string} [label]
 * @param {() => void} [act]
 */
function notice(text, label, act) {
  const place = byId('notice');
  place.replaceChildren();
  if (!text) return;
  place.append(el('span', {}, text));
  if (label && act) place.append(button(label, () => (notice(''), act())));
  place.append(button('Dismiss', () => notice('')));
}

const store = new Store((text) => notice(text));
const settings = new SettingsDialog(() => store.save(chat.shown), connect);
const chat = new Chat({
  log: byId('log'),
  list: byId('messages'),
  live: byId('live'),
  store,
  changed,
  locked: (reason) => settings.askKey(reason),
  refused: (reason) => {
    notice(reason);
    settings.open();
  },
});
const attachments = new Attachments((text) => notice(text));
new Status();

/** Asks for the models; then for the answer that the want of a key has held up. */
async function connect() {
  try {
    await settings.load();
    notice('');
    chat.unlocked();
  } catch (error) {
    const { message, status } = /** @type {import('./api.js').Failure} */ (error);
    if (status === 401) settings.askKey(message);
    else notice(`The models are not known: ${message}`, 'Try again', connect);
  }
}

/** @param {Conversation} conversation @param {number} [at] the message to show; without it, the end */
function show(conversation, at) {
  store.show(conversation.id);
  settings.use(conversation.settings);
  chat.show(conversation, at);
  changed();
  drawer(false);
}

/** Shows what depends on whether an answer is under way, and the list. */
function changed() {
  // The focus stays in the row of the message field when a button goes.
  const isInRow = ['send', 'stop'].includes(document.activeElement?.id ?? '');
  byId('send').hidden = chat.isBusy;
  byId('stop').hidden = !chat.isBusy;
  if (isInRow || document.activeElement === document.body) focus();
  byId('title').textContent = chat.shown.title;
  const found = store.find(search.value);
  byId('list').replaceChildren(...found.map(entry));
  if (!found.length && search.value.trim()) byId('list').append(el('li', { class: 'hint' }, 'Nothing is found.'));
}

/** An entry of the list. @param {{conversation: Conversation, at: number}} found */
function entry({ conversation, at }) {
  const { id, title } = conversation;
  const isShown = id === chat.shown.id;
  const act = { 'aria-current': isShown && 'true', onclick: () => show(conversation, at) };
  const open = el('button', { type: 'button', class: 'open', ...act }, title);
  const made = el('li', { class: chat.turns.has(id) ? 'busy' : null }, open);
  made.append(
    button('Rename', () => rename(conversation, made), undefined, `Rename ${title}`),
    button('Delete', () => remove(conversation), undefined, `Delete ${title}`),
  );
  return made;
}

/** @param {Conversation} conversation @param {HTMLElement} place */
function rename(conversation, place) {
  const field = el('input', { 'aria-label': 'Title', value: conversation.title, maxlength: 100 });
  /** @param {boolean} keeps */
  const end = (keeps) => {
    if (keeps && field.value.trim()) conversation.title = field.value.trim();
    store.save(conversation);
    changed();
    byId('list').querySelector(`[aria-current]`)?.scrollIntoView({ block: 'nearest' });
  };
  field.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') event.stopPropagation();
    if (event.key === 'Escape' || isSend(event)) end(event.key === 'Enter');
  });
  field.addEventListener('blur', () => field.isConnected && end(true));
  place.replaceChildren(field);
  field.focus();
  field.select();
}

/**
 * Deletes a conversation, which can be undone for as long as the notice stands.
 * @param {Conversation} conversation
 */
function remove(conversation) {
  chat.turns.get(conversation.id)?.controller.abort();
  store.remove(conversation.id);
  if (chat.shown === conversation) show(store.fresh());
  else changed();
  notice(`Deleted: ${conversation.title}`, 'Undo', () => {
    store.save(conversation);
    show(conversation);
  });
  byId('new').focus();
}

/** Takes in files that an export made, and shows the last of them. @param {File[]} files */
async function take(files) {
  const wrong = [];
  let last;
  for (const file of files) {
    try {
      last = store.take(await file.text());
    } catch (error) {
      wrong.push(`${file.name} was not imported: ${/** @type {Error} */ (error).message}.`);
    }
  }
  if (last) show(last);
  notice(wrong.join(' '));
}

/** Opens or closes the list on narrow screens. @param {boolean} isOpen */
function drawer(isOpen) {
  document.body.classList.toggle('drawer', isOpen);
  byId('menu').setAttribute('aria-expanded', String(isOpen));
  if (isOpen) byId('close-drawer').focus();
}

function begin() {
  show(store.fresh());
  focus();
}

function send() {
  const text = input.value.trim();
  if ((!text && !attachments.files.length) || !chat.send(text, attachments.files)) return;
  input.value = '';
  attachments.clear();
  notice('');
  store.show(chat.shown.id);
}

/** @param {string} theme */
function colour(theme) {
  document.documentElement.setAttribute('data-theme', theme);
  /** @type {HTMLSelectElement} */ (byId('theme')).value = theme;
}

byId('new').addEventListener('click', begin);
byId('send').addEventListener('click', send);
byId('stop').addEventListener('click', () => chat.stop());
byId('export').addEventListener('click', () => save(chat.shown));
byId('import').addEventListener('click', () => byId('import-file').click());
byId('import-file').addEventListener('change', async (event) => {
  const picker = /** @type {HTMLInputElement} */ (event.target);
  await take([...(picker.files ?? [])]);
  picker.value = '';
});
search.addEventListener('input', changed);
search.addEventListener('keydown', (event) => {
  // Escape empties the field, and stops no answer.
  if (event.key === 'Escape') event.stopPropagation();
});
byId('menu').addEventListener('click', () => drawer(true));
byId('veil').addEventListener('click', () => drawer(false));
byId('close-drawer').addEventListener('click', () => (drawer(false), byId('menu').focus()));
byId('theme').addEventListener('change', () => {
  const { value } = /** @type {HTMLSelectElement} */ (byId('theme'));
  store.write('kernmill.theme', { theme: value });
  colour(value);
});
input.addEventListener('keydown', (event) => {
  if (!isSend(event)) return;
  event.preventDefault();
  send();
});
document.addEventListener('keydown', (event) => {
  if (document.querySelector('dialog[open]')) return;
  if (event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    begin();
  } else if (event.key === 'Escape') {
    if (document.body.classList.contains('drawer')) byId('close-drawer').click();
    else chat.stop();
  }
});
window.addEventListener('storage', (event) => {
  const id = store.changed(/** @type {StorageEvent} */ (event));
  if (!id || chat.turns.has(id)) return;
  const other = store.all.get(id);
  if (other && id === chat.shown.id) show(other);
  else changed();
});
window.addEventListener('pagehide', () => {
  for (const id of chat.turns.keys()) {
    const conversation = store.all.get(id);
    if (conversation) store.save(conversation);
  }
});

try {
  colour(String(JSON.parse(local.getItem('kernmill.theme') ?? '{}').theme ?? ''));
} catch {
  colour('');
}
show(store.shown() ?? store.fresh());
focus();
connect();
