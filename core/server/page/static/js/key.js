// The API key, where the server wants one. The browser keeps it until the
// server refuses it or the person takes it back.

import { byId, el } from './dom.js';

const place = 'calla.key';

export function key() {
  return localStorage.getItem(place) ?? '';
}

export function forgetKey() {
  localStorage.removeItem(place);
}

let asking = null;

/** askKey asks for the key, once for all who wait; null is a refusal. */
export function askKey() {
  asking ??= ask(key() !== '').finally(() => { asking = null; });
  return asking;
}

function ask(refused) {
  const dialog = byId('key-dialog');
  const input = el('input', { id: 'key-input', type: 'password', autocomplete: 'off', spellcheck: 'false', required: true });
  const say = refused
    ? 'The server refused the key that this browser kept. It may have been changed.'
    : 'This server answers only to those who have its key.';
  const form = el('form', { method: 'dialog' },
    el('h2', { id: 'key-title' }, 'API key'),
    el('p', null, say + ' The key is in the file that was given to calla serve as --key-file.'),
    el('label', { for: 'key-input' }, 'Key'), input,
    el('div', { class: 'row' },
      el('button', { type: 'button', class: 'text-button', value: '', onclick: () => dialog.close('') }, 'Not now'),
      el('button', { type: 'submit', class: 'primary', value: 'use' }, 'Use the key')));
  dialog.replaceChildren(form);
  dialog.returnValue = '';
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => {
      const given = dialog.returnValue === 'use' ? input.value.trim() : '';
      input.value = '';
      if (given) localStorage.setItem(place, given);
      resolve(given || null);
    }, { once: true });
  });
}
