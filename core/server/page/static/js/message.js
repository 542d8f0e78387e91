// One message on the page.

import { el, fill, icon } from './dom.js';
import { bytes, count, rate, seconds, tokens } from './format.js';
import { Prose } from './markdown.js';
import { endWords, faultWords, progressWords } from './words.js';

const names = { user: 'You', assistant: 'Calla', tool: 'Tool result' };

/** newMessage returns the view of a message, of a kind by its role. */
export function newMessage(message, conversations) {
  const kinds = { user: UserMessage, assistant: Answer, tool: ToolResult };
  return new kinds[message.role](message, conversations);
}

class Message {
  constructor(message, conversations) {
    this.message = message;
    this.conversations = conversations;
    this.foot = el('footer', { class: 'foot' });
    this.element = el('article', { class: `message ${message.role}`, 'data-id': message.id, 'aria-label': names[message.role] });
  }

  // fill gives the message its parts, below the name of who wrote it.
  fill(...parts) {
    fill(this.element, el('h2', { class: 'visually-hidden' }, names[this.message.role]), ...parts);
  }

  /** update shows what the message has become. */
  update() {}

  // actions are buttons that come to sight when the message has the pointer or
  // the focus.
  actions(...buttons) {
    return el('span', { class: 'actions' }, buttons, this.#versions());
  }

  #versions() {
    const all = this.conversations.versions(this.message);
    if (all.length < 2) return null;
    const at = all.findIndex((m) => m.id === this.message.id);
    const go = (to, label, name) => el('button', {
      type: 'button', class: 'icon-button small', 'aria-label': label, disabled: !all[to],
      onclick: () => this.conversations.show(all[to]),
    }, icon(name));
    return el('span', { class: 'versions', role: 'group', 'aria-label': 'Versions' },
      go(at - 1, 'Earlier version', 'previous'), el('span', null, `${at + 1} of ${all.length}`), go(at + 1, 'Later version', 'next'));
  }
}

const button = (label, onclick, more) => el('button', { type: 'button', class: 'text-button small', onclick, ...more }, label);

class UserMessage extends Message {
  constructor(message, conversations) {
    super(message, conversations);
    this.body = el('div', { class: 'said', dir: 'auto' }, message.text);
    this.fill(filesOf(message), this.body, this.foot);
    this.update();
    if (message.id in conversations.draft.edits) this.edit(false);
  }

  update() {
    if (this.editing) return;
    this.foot.replaceChildren(this.actions(
      button('Edit', () => this.edit(true), { 'data-action': 'edit' }),
      button('Copy', null, { 'data-copy': 'message' })));
  }

  get source() { return this.message.text; }

  /** edit turns the message into a text box. What is typed there is kept as a draft. */
  edit(focus) {
    const { conversations, message } = this;
    this.editing = true;
    const box = el('textarea', { class: 'edit', dir: 'auto', 'aria-label': 'Edit the message' });
    box.value = conversations.draft.edits[message.id] ?? message.text;
    box.addEventListener('input', () => conversations.typeEdit(message.id, box.value));
    const done = () => conversations.edit(message, box.value);
    const cancel = () => {
      conversations.typeEdit(message.id, null);
      this.#endEdit();
      this.foot.querySelector('[data-action=edit]').focus();
    };
    box.addEventListener('keydown', (event) => {
      if (event.isComposing || event.keyCode === 229) return;
      if (event.key === 'Escape') { event.stopPropagation(); cancel(); }
      if (event.key === 'Enter' && !event.shiftKey) { event.preventDefault(); done(); }
    });
    this.body.replaceChildren(box);
    this.body.classList.add('editing');
    this.foot.replaceChildren(el('span', { class: 'row' },
      button('Cancel', cancel), el('button', { type: 'button', class: 'primary small', onclick: done }, 'Send again')));
    if (focus) box.focus();
  }

  #endEdit() {
    this.editing = false;
    this.body.classList.remove('editing');
    this.body.replaceChildren(this.message.text);
    this.update();
  }
}

/** filesOf lists the files of a message, each folded. */
function filesOf(message) {
  if (!message.files?.length) return null;
  return el('div', { class: 'file-list' }, message.files.map((f) => el('details', { class: 'file' },
    el('summary', null, f.name, el('span', { class: 'quiet' }, ` ${bytes(f.text.length)}`)),
    el('pre', { tabindex: 0, dir: 'auto', role: 'region', 'aria-label': f.name }, f.text))));
}

class ToolResult extends Message {
  constructor(message, conversations) {
    super(message, conversations);
    this.fill(el('p', { class: 'call-name' }, 'Result of ', el('code', null, message.name ?? 'the call')),
      el('pre', { class: 'result', tabindex: 0, dir: 'auto', role: 'region', 'aria-label': 'Result' }, message.text));
  }
}

class Answer extends Message {
  #frame = 0;
  #cost = 0; // of the last drawing, ms
  #drawn = 0;

  constructor(message, conversations) {
    super(message, conversations);
    this.thinking = new Thinking();
    this.body = el('div', { class: 'prose' });
    this.prose = new Prose(this.body);
    this.calls = el('div', { class: 'calls' });
    this.waiting = el('p', { class: 'waiting' });
    this.problem = el('div', { class: 'problem', hidden: true });
    this.fill(this.thinking.element, this.body, this.calls, this.waiting, this.problem, this.foot);
    this.#draw();
  }

  get source() { return this.message.text; }

  /** update draws at the next frame, or later where drawing takes long. */
  update() {
    if (this.message.state !== 'writing') {
      cancelAnimationFrame(this.#frame);
      this.#frame = 0;
      this.#draw();
      return;
    }
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      // At most a quarter of the time goes into drawing.
      if (performance.now() - this.#drawn < 3 * this.#cost) this.update();
      else this.#draw();
    });
  }

  #draw() {
    const begun = performance.now();
    const m = this.message;
    const writing = m.state === 'writing';
    this.element.setAttribute('aria-busy', String(writing));
    this.thinking.show(m);
    this.prose.show(m.text);
    this.#drawCalls();
    this.waiting.hidden = !writing || !m.progress && (m.text !== '' || m.calls.length > 0);
    this.waiting.textContent = m.progress ? progressWords(m.progress) : m.reasoning ? 'Thinking' : 'Waiting for the first word';
    if (!writing) this.#end();
    this.#drawn = performance.now();
    this.#cost = this.#drawn - begun;
    this.onDraw?.();
  }

  #drawCalls() {
    const { calls } = this.message;
    while (this.calls.children.length < calls.length) {
      this.calls.append(el('div', { class: 'call' }, el('p', { class: 'call-name' }, 'Calls ', el('code')),
        el('pre', { tabindex: 0, role: 'region', 'aria-label': 'Arguments' })));
    }
    calls.forEach((call, i) => {
      const box = this.calls.children[i];
      box.querySelector('code').textContent = call.name;
      box.querySelector('pre').textContent = pretty(call.arguments);
    });
  }

  // end adds what is there only once the answer has ended.
  #end() {
    const { text, state } = this.message;
    fill(this.foot, this.actions(
      text && button('Copy', null, { 'data-copy': 'message' }),
      state !== 'failed' && button('Try again', () => this.conversations.retry(this.message), { 'data-action': 'retry' })), measures(this.message));
    this.#showProblem();
    if (this.message.calls.length && !this.results && this.message.state === 'done') {
      this.results = this.#resultForm();
      this.calls.after(this.results);
    }
    if (this.results) this.results.hidden = this.conversations.current?.head !== this.message.id;
  }

  #showProblem() {
    const m = this.message;
    const { what, remedy } = m.fault ? faultWords(m.fault) : { what: endWords(m), remedy: m.warning ?? '' };
    this.problem.hidden = !what && !remedy;
    this.problem.classList.toggle('fault', m.state === 'failed');
    fill(this.problem, el('p', null, what && el('strong', null, what), what && remedy && ' ', remedy));
    if (m.state === 'failed') this.problem.append(button('Try again', () => this.conversations.retry(m), { 'data-action': 'retry-fault' }));
  }

  // resultForm asks for what the calls came to: the page itself runs no tools.
  #resultForm() {
    const { message, conversations } = this;
    const boxes = message.calls.map((call) => {
      const box = el('textarea', { rows: 2, dir: 'auto', required: true });
      box.value = conversations.typedResult(message, call);
      box.addEventListener('input', () => conversations.typeResult(message, call, box.value));
      return el('label', null, `What ${call.name} answers`, box);
    });
    const form = el('form', { class: 'results' }, boxes, el('button', { type: 'submit', class: 'primary small' }, 'Send the results'));
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      conversations.giveResults(message);
    });
    return form;
  }
}

function pretty(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json; // not whole yet
  }
}

/** measures says how many tokens an answer took, how fast, and what the cache gave. */
function measures(m) {
  if (!m.usage) return null;
  const { prompt, cached, completion } = m.usage;
  const parts = [tokens(completion)];
  if (m.timing?.writing > 0 && completion > 1) parts.push(rate((completion - 1) / m.timing.writing));
  if (m.timing) parts.push(`first word after ${seconds(m.timing.first)}`);
  parts.push(cached ? `${count(cached)} of ${count(prompt)} prompt tokens from the cache` : `${count(prompt)} prompt tokens, none from the cache`);
  return el('span', { class: 'measures' }, parts.join(' · '));
}

// Thinking is the thought before an answer, folded.
class Thinking {
  constructor() {
    this.summary = el('summary');
    this.text = el('div', { class: 'thought', dir: 'auto' });
    this.element = el('details', { class: 'thinking', hidden: true }, this.summary, this.text);
  }

  show(m) {
    this.element.hidden = !m.reasoning;
    if (this.text.textContent !== m.reasoning) this.text.textContent = m.reasoning;
    this.summary.textContent = m.thought === undefined ? 'Thinking…' : m.thought < 1 ? 'Thought for a moment' : `Thought for ${seconds(m.thought)}`;
  }
}
