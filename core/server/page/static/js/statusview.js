// The status: how the engine is, what it does, and how to connect to it.

import { chart } from './chart.js';
import { byId, copy, el, fill, icon } from './dom.js';
import { bytes, clock, count, rate, seconds, tokens } from './format.js';
import { beganAt, hourOf } from './history.js';
import { forgetKey, key } from './key.js';
import { apps, languages } from './snippets.js';
import { receiptWords, remedyFor, slowWords, stateRemedy, stateWords } from './words.js';

export class StatusView {
  #connected = ''; // what the snippets were made for

  constructor(feed, chat, sidebar) {
    Object.assign(this, { feed, chat });
    this.view = byId('status');
    this.live = el('div', { class: 'live' });
    this.connect = el('div', { class: 'connect' });
    const menu = el('button', { type: 'button', class: 'icon-button menu-button', 'aria-label': 'Conversations', onclick: () => sidebar.toggle() }, icon('menu'));
    this.view.append(
      el('header', { class: 'top' }, menu, el('h1', { id: 'status-title', class: 'title', tabindex: -1 }, 'Status')),
      el('div', { class: 'scroller' }, el('div', { class: 'sheet-inner wide' }, this.live, this.connect)));
    this.view.addEventListener('click', (event) => this.#copy(event));
    feed.addEventListener('status', () => this.draw());
  }

  get shown() { return !this.view.hidden; }

  /** draw shows the newest status, where anyone looks. */
  draw() {
    if (!this.shown) return;
    const { status } = this.feed;
    fill(this.live, this.#engine(status), status && this.#numbers(status), status && this.#charts(status), status && this.#errors(status.recent_errors));
    if (status) this.#connect(status);
  }

  #engine(status) {
    const needsKey = this.feed.fault?.code === 'invalid_api_key';
    const words = needsKey ? 'A key is needed' : stateWords(status);
    const remedy = needsKey ? 'Send a message or reload the page to enter it.' : stateRemedy(status);
    const detail = [status?.reason, remedy].filter(Boolean).join('. ');
    return el('section', { class: 'state', 'aria-label': 'Engine' },
      el('p', { class: 'state-words' }, el('span', { class: 'dot', 'data-state': status?.state ?? 'down', 'aria-hidden': 'true' }), words),
      detail && el('p', { class: 'quiet' }, detail),
      status?.progress && el('progress', { max: status.progress.total, value: status.progress.done, 'aria-label': 'Loading' }));
  }

  #numbers(status) {
    const { model, memory, throughput, queue, prefix_cache: cache, requests } = status;
    const used = this.chat.used;
    return el('dl', { class: 'numbers' },
      row('Model', model.id, `also as ${model.aliases.join(', ')}`),
      row('Context', tokens(model.max_model_len), used ? `${count(used)} used by the open conversation` : 'no conversation is open', used / model.max_model_len),
      row('Memory', bytes(memory.used_bytes), `of at most ${bytes(memory.needed_bytes)}; the device has ${bytes(memory.limit_bytes)}`, memory.used_bytes / memory.needed_bytes),
      row('Now', ...nowWords(throughput)),
      row('Last answer', ...lastWords(throughput.last)),
      row('Queue', queue.running ? '1 request runs' : 'Empty', `${count(queue.waiting)} of at most ${count(queue.capacity)} wait`),
      row('Prefix cache', `${count(cache.entries)} ${cache.entries === 1 ? 'entry' : 'entries'}`, bytes(cache.bytes)),
      row('Requests', count(requests.total), `${count(requests.failed)} failed; up for ${seconds(status.uptime_s)}, version ${status.version}`),
      row('Receipt of the model', ...receiptWords(status.receipt)));
  }

  #charts(status) {
    const hour = hourOf(status.throughput.hour);
    const began = beganAt(status);
    return el('section', { class: 'charts', 'aria-labelledby': 'charts-title' },
      el('h2', { id: 'charts-title' }, 'The last hour'),
      chart('Answering', hour, 'decode'), chart('Reading prompts', hour, 'prefill'),
      el('p', { class: 'quiet' }, 'As the server counts, for all programs. ',
        began && `It started at ${clock(began)}; what was before is not in here.`));
  }

  #errors(errors) {
    return el('section', { class: 'errors', 'aria-labelledby': 'errors-title' },
      el('h2', { id: 'errors-title' }, 'Recent errors'),
      errors.length === 0 ? el('p', { class: 'quiet' }, 'None.') : el('ul', null, errors.map((e) => el('li', null,
        el('p', null, el('time', { datetime: e.at }, clock(e.at)), ' ', el('strong', null, e.message || e.code), e.count > 1 && ` (${count(e.count)} times)`),
        el('p', { class: 'quiet' }, remedyFor(e.code))))));
  }

  // connect is drawn again only where it has changed: people copy from it.
  #connect(status) {
    const options = {
      base: `${location.origin}/v1`, model: status.model.id, key: status.key_needed ? 'YOUR_KEY' : '', context: status.model.max_model_len,
    };
    const made = JSON.stringify(options);
    if (made === this.#connected) return;
    this.#connected = made;
    fill(this.connect,
      el('h2', null, 'Connect'),
      el('p', null, 'Any program that speaks OpenAI’s API can use this address:'),
      code(options.base, 'Address'),
      status.key_needed && el('p', { class: 'quiet' }, 'The key is asked for; it is in the server’s key file. ',
        key() && el('button', { type: 'button', class: 'text-button small', onclick: (event) => { forgetKey(); event.target.remove(); } }, 'Forget the key in this browser')),
      el('h3', null, 'From a program'), ...languages(options).map(entry),
      el('h3', null, 'From an app'), ...apps(options).map(entry));
  }

  #copy(event) {
    const button = event.target.closest('[data-copy]');
    if (button) copy(button.closest('.code').querySelector('code').textContent, button);
  }
}

function row(name, value, detail, share) {
  return el('div', null, el('dt', null, name),
    el('dd', null, el('span', { class: 'value' }, value), el('span', { class: 'quiet' }, detail),
      share > 0 && el('meter', { value: Math.min(share, 1), 'aria-label': `${name}: ${Math.round(share * 100)} %` })));
}

function nowWords(throughput) {
  const { now } = throughput;
  const slow = slowWords(throughput);
  const doing = (what) => [what, slow].filter(Boolean).join('. ');
  if (now.decode_tokens_per_s) return [rate(now.decode_tokens_per_s), doing('answering')];
  if (now.prefill_tokens_per_s) return [rate(now.prefill_tokens_per_s), doing('reading a prompt')];
  return ['Nothing to do', slow];
}

function lastWords(last) {
  if (!last) return ['None yet', ''];
  const read = last.prompt_tokens - last.cached_tokens;
  return [rate(last.decode_tokens_per_s), `${tokens(last.completion_tokens)} at ${clock(last.at)}; ${tokens(read)} of the prompt read at ${rate(last.prefill_tokens_per_s)}, ${count(last.cached_tokens)} from the cache`];
}

function entry({ name, note, code: text, page }) {
  return el('details', { class: 'entry' }, el('summary', null, name),
    note && el('p', null, note), code(text, name), page && el('p', { class: 'quiet' }, `By ${page}.`));
}

function code(text, name) {
  return el('figure', { class: 'code', dir: 'ltr' },
    el('figcaption', null, el('span', null, name), el('button', { type: 'button', class: 'copy', 'data-copy': 'code', 'aria-label': `Copy: ${name}` }, 'Copy')),
    el('pre', { tabindex: 0, role: 'region', 'aria-label': name }, el('code', null, text)));
}
