// The list of conversations, and the engine's state below it.

import { byId, el, icon } from './dom.js';
import { stateWords } from './words.js';

export class Sidebar {
  constructor(conversations, feed) {
    this.conversations = conversations;
    conversations.addEventListener('list', () => this.#list());
    conversations.addEventListener('open', () => this.#list());
    feed.addEventListener('status', () => this.#engine(feed.status));
    this.button = byId('menu-button');
    this.button.append(icon('menu'));
    this.button.addEventListener('click', () => this.toggle());
    byId('sidebar').addEventListener('click', (event) => { if (event.target.closest('a')) this.toggle(false); });
    byId('sidebar').addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || !this.open) return;
      event.stopPropagation();
      this.toggle(false);
      this.button.focus();
    });
  }

  /** at says whether the status is shown, and no conversation. */
  at(status) {
    this.status = status;
    if (status) byId('engine-link').setAttribute('aria-current', 'page');
    else byId('engine-link').removeAttribute('aria-current');
    this.#list();
  }

  get open() { return document.body.classList.contains('with-sidebar'); }

  /** toggle opens or closes the list where the window is too narrow to have it beside the chat. */
  toggle(open = !this.open) {
    document.body.classList.toggle('with-sidebar', open);
    this.button.setAttribute('aria-expanded', String(open));
    if (open) byId('new-chat').focus();
  }

  #list() {
    const { list, current } = this.conversations;
    const focused = document.activeElement?.closest('#conversations a')?.getAttribute('href');
    byId('no-conversations').hidden = list.length > 0;
    byId('conversations').replaceChildren(...list.map((c) => this.#item(c, !this.status && c.id === current?.id)));
    if (focused) byId('conversations').querySelector(`a[href="${focused}"]`)?.focus();
  }

  #item(conversation, open) {
    const title = conversation.title || 'Conversation';
    return el('li', { class: open ? 'open' : null },
      el('a', { href: `#/c/${conversation.id}`, 'aria-current': open ? 'page' : null, dir: 'auto' }, title),
      el('button', {
        type: 'button', class: 'icon-button small', 'aria-label': `Delete ${title}`, onclick: () => this.#remove(conversation, title),
      }, icon('close')));
  }

  async #remove(conversation, title) {
    if (!await confirm(`Delete “${title}”?`, 'Its messages are removed from this browser. They can’t be brought back.', 'Delete')) return;
    await this.conversations.remove(conversation);
    if (location.hash.endsWith(conversation.id)) location.hash = '#/';
    byId('new-chat').focus();
  }

  #engine(status) {
    byId('engine-state').textContent = stateWords(status);
    byId('engine-model').textContent = status?.model.id ?? '';
    byId('engine-dot').dataset.state = status?.state ?? 'down';
  }
}

/** confirm asks before something that can't be undone. */
function confirm(question, detail, yes) {
  const dialog = byId('confirm');
  dialog.replaceChildren(el('form', { method: 'dialog' },
    el('h2', { id: 'confirm-title', dir: 'auto' }, question), el('p', null, detail),
    el('div', { class: 'row' },
      el('button', { type: 'submit', class: 'text-button', value: '', autofocus: true }, 'Cancel'),
      el('button', { type: 'submit', class: 'primary danger', value: 'yes' }, yes))));
  dialog.returnValue = '';
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'), { once: true });
  });
}
