// Calls of the server's API. Every address is below the page's own; nothing else is ever asked.

import { session } from './store.js';

const KEY = 'kernmill.key';

/** The API key, which lives as long as the tab: session storage only. */
export const key = {
  get: () => session.getItem(KEY) ?? '',
  /** @param {string} value */
  set: (value) => (value ? session.setItem(KEY, value) : session.removeItem(KEY)),
};

/** What the server said, or what went wrong on the way to it. */
export class Failure extends Error {
  /**
   * @param {string} message
   * @param {{status?: number, type?: string, code?: string, param?: string, retryAfter?: string}} [more]
   */
  constructor(message, more = {}) {
    super(message);
    this.status = more.status ?? 0;
    /** Status, kind and field, such as `HTTP 400, invalid_request_error, temperature`. */
    this.detail = [more.status ? `HTTP ${more.status}` : '', more.type, more.code, more.param]
      .filter((part) => part && typeof part === 'string')
      .join(', ');
    if (more.retryAfter) this.detail += `; the server asks to wait ${more.retryAfter} s`;
  }
}

/**
 * The failure that an error object of the API tells.
 * @param {any} error
 * @param {{status?: number, retryAfter?: string}} [more]
 */
const told = (error, more) =>
  new Failure(String(error?.message ?? 'The server gave no reason.'), { ...error, ...more });

/**
 * Sends one request. A status other than success is a `Failure` with the server's message.
 * @param {string} path
 * @param {object} [body]
 * @param {AbortSignal} [signal]
 * @returns {Promise<Response>}
 */
async function request(path, body, signal) {
  /** @type {Record<string, string>} */
  const headers = {};
  if (key.get()) headers.Authorization = `Bearer ${key.get()}`;
  if (body) headers['Content-Type'] = 'application/json';
  /** @type {Response} */
  let response;
  try {
    response = await fetch(new URL(path, document.baseURI), {
      method: body ? 'POST' : 'GET',
      headers,
      body: body && JSON.stringify(body),
      signal,
      cache: 'no-store',
      redirect: 'error',
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Failure('The server cannot be reached. Is it still running?');
  }
  if (response.ok) return response;
  const text = await response.text();
  const more = { status: response.status, retryAfter: response.headers.get('Retry-After') ?? undefined };
  let error;
  try {
    error = JSON.parse(text).error;
  } catch {
    error = { message: text.slice(0, 500) || response.statusText };
  }
  throw told(error, more);
}

/**
 * What the server can answer with: models, and adapters, which have a `parent`.
 * @returns {Promise<{id: string, parent?: string | null}[]>}
 */
export async function models() {
  const { data } = await (await request('v1/models')).json();
  return data;
}

/**
 * How busy the server is.
 * @param {AbortSignal} signal
 * @returns {Promise<any>}
 */
export const loads = async (signal) => (await request('v1/loads', undefined, signal)).json();

/**
 * The data of server-sent events. Comments, such as pings, and other fields are skipped.
 * @param {ReadableStream<Uint8Array>} stream
 * @returns {AsyncGenerator<string>}
 */
async function* events(stream) {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  /** @type {string[]} */
  let data = [];
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      for (const full of lines) {
        const line = full.endsWith('\r') ? full.slice(0, -1) : full;
        if (line.startsWith('data:')) {
          data.push(line.slice(line[5] === ' ' ? 6 : 5));
        } else if (line === '' && data.length) {
          yield data.join('\n');
          data = [];
        }
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/**
 * Asks for an answer, and gives its chunks as they come. An answer that ends early is a `Failure`.
 * @param {object} body
 * @param {AbortSignal} signal
 * @returns {AsyncGenerator<any>}
 */
export async function* chat(body, signal) {
  const response = await request('v1/chat/completions', body, signal);
  if (!response.body) throw new Failure('The server sent no answer.');
  try {
    for await (const data of events(response.body)) {
      if (data === '[DONE]') return;
      const chunk = JSON.parse(data);
      if (chunk.error) throw told(chunk.error);
      yield chunk;
    }
  } catch (error) {
    if (signal.aborted || error instanceof Failure) throw error;
    throw new Failure('The connection broke before the answer was complete.');
  }
  throw new Failure('The connection ended before the answer was complete.');
}
