// The box that messages are written in.

import { byId, el, icon, notice } from './dom.js';
import { readFiles } from './files.js';
import { bytes } from './format.js';

export class Composer {
  constructor(conversations, chat) {
    this.conversations = conversations;
    this.chat = chat;
    this.box = byId('composer-text');
    this.#draw();
    this.#listen();
    const early = this.box.value; // typed before the page was ready
    if (early) conversations.addEventListener('open', () => conversations.type(conversations.draft.text + early), { once: true });
    conversations.addEventListener('open', () => this.#open());
    conversations.addEventListener('list', () => this.#buttons());
    conversations.addEventListener('message', () => this.#buttons());
  }

  #draw() {
    byId('send').append(icon('send'));
    byId('stop').append(icon('stop'));
    byId('attach').append(icon('attach'));
  }

  #listen() {
    const { conversations } = this;
    byId('composer').addEventListener('submit', (event) => {
      event.preventDefault();
      this.send();
    });
    byId('stop').addEventListener('click', () => this.#stop());
    byId('think').addEventListener('click', () => this.#think());
    this.box.addEventListener('input', () => {
      conversations.type(this.box.value);
      this.#fit();
      this.#buttons();
    });
    this.box.addEventListener('keydown', (event) => this.#key(event));
    byId('attach').addEventListener('click', () => byId('file-input').click());
    byId('file-input').addEventListener('change', (event) => {
      this.#add(event.target.files);
      event.target.value = '';
    });
    this.#listenForFiles();
  }

  #listenForFiles() {
    const withFiles = (event) => event.dataTransfer?.types.includes('Files');
    addEventListener('dragover', (event) => {
      if (!withFiles(event)) return;
      event.preventDefault();
      document.body.classList.add('dropping');
    });
    addEventListener('dragleave', (event) => {
      if (!event.relatedTarget) document.body.classList.remove('dropping');
    });
    addEventListener('drop', (event) => {
      document.body.classList.remove('dropping');
      if (!withFiles(event)) return;
      event.preventDefault();
      this.#add(event.dataTransfer.files);
    });
    this.box.addEventListener('paste', (event) => {
      if (event.clipboardData.files.length === 0) return;
      event.preventDefault();
      this.#add(event.clipboardData.files);
    });
  }

  // A key that ends or steers the input of a character is the input method's
  // alone. Safari says so by the code 229 where it has no composition any more.
  #key(event) {
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === 'Enter' && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      this.send();
    }
    if (event.key === 'ArrowUp' && this.box.value === '') {
      event.preventDefault();
      this.chat.editLast();
    }
  }

  send() {
    if (this.conversations.writing) return;
    this.conversations.send();
    this.#open();
  }

  #stop() {
    this.conversations.stop();
    this.box.focus();
  }

  #think() {
    const settings = { ...this.conversations.settings };
    settings.thinking = settings.thinking ? '' : 'medium';
    this.conversations.settings = settings;
    this.#buttons();
  }

  async #add(files) {
    const { taken, refused } = await readFiles(files);
    const { draft } = this.conversations;
    this.conversations.attach([...draft.files, ...taken]);
    notice('files', refused.length ? `${refused.join(', ')}: only files of plain text, up to 4 MB each, can go with a message.` : '');
    this.#open();
    this.box.focus();
  }

  #open() {
    const { draft } = this.conversations;
    if (this.box.value !== draft.text) this.box.value = draft.text;
    this.#showFiles();
    this.#fit();
    this.#buttons();
  }

  #showFiles() {
    const { files } = this.conversations.draft;
    const list = byId('files');
    list.hidden = files.length === 0;
    list.replaceChildren(...files.map((file) => el('li', null, el('span', null, file.name),
      el('span', { class: 'quiet' }, bytes(file.text.length)),
      el('button', {
        type: 'button', class: 'icon-button small', 'aria-label': `Leave out ${file.name}`,
        onclick: () => {
          this.conversations.attach(files.filter((f) => f !== file));
          this.#open();
          this.box.focus();
        },
      }, icon('close')))));
  }

  #buttons() {
    const { conversations } = this;
    byId('send').hidden = conversations.writing;
    byId('stop').hidden = !conversations.writing;
    byId('send').disabled = !this.box.value.trim() && conversations.draft.files.length === 0;
    byId('think').setAttribute('aria-pressed', String(Boolean(conversations.settings.thinking)));
  }

  // fit makes the box as high as its text, up to what the style allows.
  #fit() {
    this.box.style.height = 'auto';
    this.box.style.height = `${this.box.scrollHeight}px`;
  }
}
