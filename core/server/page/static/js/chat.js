// The conversation that is open, on the page.

import { announce, byId, copy } from './dom.js';
import { count } from './format.js';
import { newMessage } from './message.js';
import { faultWords } from './words.js';

export class Chat {
  #shown = new Map(); // views by message id, in the order of the path
  #stick = true; // the end of the conversation stays in sight

  /** feed tells how large the model's context is. */
  constructor(conversations, feed) {
    this.conversations = conversations;
    this.feed = feed;
    this.box = byId('messages');
    this.scroller = byId('scroller');
    conversations.addEventListener('open', () => this.#open());
    conversations.addEventListener('message', (event) => this.#update(event.detail));
    conversations.addEventListener('list', () => this.#title());
    feed.addEventListener('status', () => this.#context());
    this.scroller.addEventListener('scroll', () => this.#scrolled(), { passive: true });
    byId('latest').addEventListener('click', () => this.#toEnd());
    this.box.addEventListener('click', (event) => this.#copy(event));
    new ResizeObserver(() => this.#follow()).observe(this.box);
  }

  // open shows the path. Messages that were on it keep their elements.
  #open() {
    const path = this.conversations.path;
    const changed = this.conversations.current?.id !== this.id;
    this.id = this.conversations.current?.id;
    if (changed) this.#clear();
    const views = new Map(path.map((m) => [m.id, this.#shown.get(m.id) ?? this.#view(m)]));
    for (const [id, view] of this.#shown) if (!views.has(id)) view.element.remove();
    let before = null;
    for (const view of views.values()) {
      if (view.element.previousElementSibling !== before || !view.element.isConnected) {
        if (before) before.after(view.element);
        else this.box.prepend(view.element);
      }
      before = view.element;
    }
    for (const m of path) { // another tab, or another version beside it, may have changed one
      if (!this.#shown.has(m.id)) continue;
      views.get(m.id).message = m;
      views.get(m.id).update();
    }
    this.#shown = views;
    byId('greeting').hidden = path.length > 0;
    this.#title();
    this.#context();
    if (changed || path.at(-1)?.state === 'writing') this.#toEnd();
  }

  #clear() {
    for (const view of this.#shown.values()) view.element.remove();
    this.#shown.clear();
  }

  #view(message) {
    const view = newMessage(message, this.conversations);
    view.onDraw = () => this.#follow();
    return view;
  }

  #update(message) {
    this.#shown.get(message.id)?.update();
    if (message.state === 'writing') return;
    this.#context();
    announce(message.fault ? faultWords(message.fault).what : `Calla’s answer: ${message.text.slice(0, 1500)}`);
  }

  #title() {
    const { current } = this.conversations;
    byId('chat-title').textContent = current?.title || 'New conversation';
    document.title = current?.title ? `${current.title} – Calla` : 'Calla';
  }

  // context says how much of the model's context the conversation fills.
  #context() {
    const limit = this.feed.status?.model.max_model_len;
    const used = this.used;
    byId('context').textContent = used && limit ? `${count(used)} of ${count(limit)} tokens` : '';
  }

  /** used is how many tokens the conversation had at its last whole answer. */
  get used() {
    const usage = this.conversations.path.findLast((m) => m.usage)?.usage;
    return usage ? usage.prompt + usage.completion : 0;
  }

  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    this.#stick = scrollHeight - scrollTop - clientHeight < 40;
    byId('latest').hidden = this.#stick;
  }

  #follow() {
    if (this.#stick) this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  #toEnd() {
    this.#stick = true;
    byId('latest').hidden = true;
    this.#follow();
  }

  #copy(event) {
    const button = event.target.closest('[data-copy]');
    if (!button) return;
    if (button.dataset.copy === 'code') {
      copy(button.closest('.code').querySelector('code').textContent, button);
      return;
    }
    copy(this.#shown.get(button.closest('.message').dataset.id).source, button);
  }

  /** editLast opens the newest message of the person's own for an edit. */
  editLast() {
    const last = this.conversations.path.findLast((m) => m.role === 'user');
    this.#shown.get(last?.id)?.edit(true);
  }
}
