// The settings of the open conversation. What is typed counts at once.

import { byId, el } from './dom.js';
import { checkTools, efforts, numbers } from './sampling.js';

export class Settings {
  constructor(conversations) {
    this.conversations = conversations;
    byId('settings-button').addEventListener('click', () => this.open());
    conversations.addEventListener('open', () => byId('settings').close());
  }

  open() {
    const dialog = byId('settings');
    const close = el('button', { type: 'button', class: 'primary', onclick: () => dialog.close() }, 'Done');
    dialog.replaceChildren(el('div', { class: 'sheet-inner' },
      el('header', { class: 'sheet-head' }, el('h2', { id: 'settings-title' }, 'Settings of this conversation'), close),
      this.#title(), this.#system(), this.#thinking(),
      el('fieldset', null, el('legend', null, 'How words are chosen'),
        el('p', { class: 'quiet' }, 'An empty field leaves the choice to the server.'),
        el('div', { class: 'grid' }, numbers.map((n) => this.#number(n)))),
      this.#tools()));
    dialog.showModal();
  }

  // set changes one setting; undefined leaves it to the server again.
  #set(name, value) {
    const settings = { ...this.conversations.settings };
    if (value === undefined || value === '') delete settings[name];
    else settings[name] = value;
    this.conversations.settings = settings;
  }

  #title() {
    const { current } = this.conversations;
    if (!current) return null;
    const input = el('input', { type: 'text', dir: 'auto', value: current.title });
    input.addEventListener('change', () => this.conversations.rename(current, input.value));
    return field('Name', '', input);
  }

  #system() {
    const box = el('textarea', { rows: 4, dir: 'auto' });
    box.value = this.conversations.settings.system ?? '';
    box.addEventListener('input', () => this.#set('system', box.value));
    return field('System prompt', 'What the model is told before everything else.', box);
  }

  #thinking() {
    const select = el('select', null, efforts.map(([value, label]) => el('option', { value }, label)));
    select.value = this.conversations.settings.thinking ?? '';
    select.addEventListener('change', () => {
      this.#set('thinking', select.value);
      byId('think').setAttribute('aria-pressed', String(select.value !== ''));
    });
    return field('Thinking', 'How long the model may think before it answers.', select);
  }

  #number({ name, label, min, max, step, note }) {
    const input = el('input', { type: 'number', min, max, step: step < 1 ? 'any' : step, placeholder: 'server’s choice' });
    input.value = this.conversations.settings[name] ?? '';
    const error = el('span', { class: 'error', role: 'alert' });
    input.addEventListener('input', () => {
      const bad = !input.validity.valid;
      error.textContent = bad ? `A ${step === 1 ? 'whole number' : 'number'} from ${min} to ${max}; the last good value counts` : '';
      if (!bad) this.#set(name, input.value === '' ? undefined : input.valueAsNumber);
    });
    return field(label, note, input, error);
  }

  #tools() {
    const box = el('textarea', { rows: 5, class: 'mono', spellcheck: 'false', dir: 'ltr' });
    box.value = this.conversations.settings.tools ?? '';
    const error = el('span', { class: 'error', role: 'alert' });
    const check = () => { error.textContent = checkTools(box.value); };
    box.addEventListener('input', () => {
      this.#set('tools', box.value);
      check();
    });
    check();
    return field('Tools', 'A JSON list of functions that the model may call, as OpenAI’s API has them. The page asks you for their results.', box, error);
  }
}

let fields = 0;

function field(label, note, input, error) {
  const id = `field-${++fields}`;
  input.id = id;
  if (note) input.setAttribute('aria-describedby', `${id}-note`);
  return el('div', { class: 'field' }, el('label', { for: id }, label), input,
    note && el('span', { class: 'quiet', id: `${id}-note` }, note), error);
}
