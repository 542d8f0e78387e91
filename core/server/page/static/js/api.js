// The public API, as any client sees it.

import { askKey, key } from './key.js';
import { EventReader } from './sse.js';

/**
 * Fault is a request that failed. Its code is the server's, or one of the
 * page's own: "unreachable" where no server answered, "cut_off" where a stream
 * ended before its end, "unreadable" where an answer made no sense.
 */
export class Fault extends Error {
  constructor(code, message, more = {}) {
    super(message);
    Object.assign(this, { code, status: 0, param: null, retryAfter: 0 }, more);
  }
}

async function request(path, options = {}) {
  const response = await send(path, options);
  if (response.status !== 401) return response;
  if (options.quiet || !await askKey()) throw await faultOf(response);
  return request(path, options);
}

async function send(path, options) {
  const headers = { ...options.headers };
  if (key()) headers.Authorization = `Bearer ${key()}`;
  try {
    return await fetch(path, { ...options, headers, cache: 'no-store' });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Fault('unreachable', 'no server answers at this address');
  }
}

async function faultOf(response) {
  const more = { status: response.status, retryAfter: Number(response.headers.get('Retry-After')) || 0 };
  try {
    return faultFrom((await response.json()).error, more);
  } catch {
    return new Fault('unreadable', `the server answered with status ${response.status}`, more);
  }
}

function faultFrom(error, more) {
  return new Fault(error.code ?? error.type ?? 'unreadable', error.message ?? '', { param: error.param, ...more });
}

/** status returns GET /v1/status. quiet asks nobody for a key. */
export async function status(quiet = false) {
  const response = await request('/v1/status', { quiet });
  if (!response.ok) throw await faultOf(response);
  return response.json();
}

/**
 * complete streams one chat completion: chunks as the server has them, up to
 * its end. Whatever goes wrong is a Fault; an abort by signal is an AbortError.
 */
export async function* complete(body, signal) {
  const response = await request('/v1/chat/completions', {
    method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body), signal,
  });
  if (!response.ok) throw await faultOf(response);
  for await (const data of events(response.body)) {
    if (data === '[DONE]') return;
    const chunk = parse(data);
    if (chunk.error) throw faultFrom(chunk.error, { status: 200 });
    yield chunk;
  }
  throw new Fault('cut_off', 'the stream ended before the answer did');
}

// events reads a body piece by piece and not through a stream in between: that
// would drop, where the connection breaks off, what had come before.
async function* events(body) {
  const pieces = body.getReader();
  const decoder = new TextDecoder();
  const reader = new EventReader();
  try {
    for (;;) {
      const { value, done } = await pieces.read();
      if (done) return;
      yield* reader.read(decoder.decode(value, { stream: true }));
    }
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Fault('cut_off', 'the connection broke off');
  } finally {
    pieces.cancel().catch(() => {});
  }
}

function parse(data) {
  try {
    return JSON.parse(data);
  } catch {
    throw new Fault('unreadable', 'an event of the stream is not JSON');
  }
}
