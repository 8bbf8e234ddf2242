// Files: texts that go along with a message, and conversations that leave and come as JSON.

import { button, byId, el, size } from './dom.js';

/** @typedef {import('./store.js').Attachment} Attachment */

/** Bytes of one file, and files of one message. */
const [LARGEST, MOST] = [256 * 1024, 8];
/** Endings of files that are no text, although some of them hold text in a form that is not read here. */
const KINDS = [
  ['a picture', /\.(png|jpe?g|gif|webp|avif|bmp|ico|tiff?|heic)$/i],
  ['a PDF', /\.pdf$/i],
  ['an office document', /\.(docx?|xlsx?|pptx?|od[tsp])$/i],
  ['a recording', /\.(mp[34]|wav|ogg|flac|m4a|mov|avi|mkv|webm)$/i],
  ['an archive', /\.(zip|gz|xz|zst|bz2|7z|tar|rar|jar)$/i],
];
const ONLY = 'The model reads text only.';

/**
 * The text of a file. An error says why there is none.
 * @param {File} file
 */
async function read(file) {
  const kind = KINDS.find(([, ending]) => /** @type {RegExp} */ (ending).test(file.name));
  if (kind) throw new Error(`${file.name} is ${kind[0]}. ${ONLY}`);
  if (file.size > LARGEST) {
    throw new Error(`${file.name} has ${size(file.size)}; ${size(LARGEST)} can be attached at most.`);
  }
  let text = '\0';
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    // Said below.
  }
  if (text.includes('\0')) throw new Error(`${file.name} is no text in UTF-8. ${ONLY}`);
  if (!text.trim()) throw new Error(`${file.name} is empty.`);
  return text;
}

/**
 * What the model gets of a message: each file as a block of code below its name, then what was typed.
 * @param {{content: string, files?: Attachment[]}} message
 */
export function whole({ content, files = [] }) {
  const blocks = files.map(({ name, text }) => {
    // More backticks than any run in the text, so that it cannot end the block.
    const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
    const fence = '`'.repeat(longest + 1);
    const language = /\.(\w+)$/.exec(name)?.[1] ?? '';
    return `${name}:\n${fence}${language}\n${text.replace(/\n$/, '')}\n${fence}`;
  });
  return [...blocks, content].filter(Boolean).join('\n\n');
}

/** Files that wait to be sent, above the message field. */
export class Attachments {
  /** @param {(text: string) => void} warn is told what cannot be attached */
  constructor(warn) {
    this.warn = warn;
    /** @type {Attachment[]} */
    this.files = [];
    this.list = byId('files');
    const picker = /** @type {HTMLInputElement} */ (byId('pick'));
    byId('attach').addEventListener('click', () => picker.click());
    picker.addEventListener('change', async () => {
      await this.add([...(picker.files ?? [])]);
      picker.value = '';
      byId('input').focus();
    });
    const main = byId('main');
    main.addEventListener('dragover', (event) => {
      if (event.dataTransfer?.types.includes('Files')) event.preventDefault();
    });
    main.addEventListener('drop', (event) => this.given(event, event.dataTransfer));
    byId('input').addEventListener('paste', (event) => this.given(event, event.clipboardData));
  }

  /** Takes files that were dropped or pasted. @param {Event} event @param {DataTransfer | null} data */
  given(event, data) {
    // Text from an office program comes with a picture of itself.
    if (!data?.files.length || data.types.includes('text/plain')) return;
    event.preventDefault();
    this.add([...data.files]);
  }

  /** @param {File[]} files */
  async add(files) {
    const wrong = [];
    for (const file of files) {
      try {
        if (this.files.length >= MOST) {
          throw new Error(`A message has ${MOST} files at most: ${file.name} was left out.`);
        }
        this.files.push({ name: file.name, text: await read(file) });
      } catch (error) {
        wrong.push(/** @type {Error} */ (error).message);
      }
    }
    if (wrong.length) this.warn(wrong.join(' '));
    this.show();
  }

  clear() {
    this.files = [];
    this.show();
  }

  show() {
    const entry = (/** @type {Attachment} */ file) => {
      const remove = () => {
        this.files = this.files.filter((one) => one !== file);
        this.show();
        byId('input').focus();
      };
      const about = el('span', { class: 'hint' }, size(new Blob([file.text]).size));
      const made = el('li', {}, el('span', { class: 'name' }, file.name), about);
      made.append(button('Remove', remove, undefined, `Remove ${file.name}`));
      return made;
    };
    this.list.replaceChildren(...this.files.map(entry));
    this.list.hidden = !this.files.length;
  }
}

/** Hands a conversation to the browser. @param {import('./store.js').Conversation} conversation */
export function save({ title, updated, settings, messages }) {
  const text = JSON.stringify({ title, updated: new Date(updated).toISOString(), settings, messages }, null, 2);
  const href = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
  const name = title.replace(/[^\p{L}\p{N}]+/gu, '-').slice(0, 40) || 'chat';
  el('a', { href, download: `${name}.json` }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}
