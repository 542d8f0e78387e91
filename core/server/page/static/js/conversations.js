// The conversations and the answers that are being written. Views listen for:
//
//   list     the list of conversations has changed
//   open     another conversation is shown, or its path is another one
//   message  a message of the open conversation has changed; detail is it
//
// A message is {id, conversation, parent, role, created, state, text} and, by
// its role, files; or reasoning, calls, usage, timing, finish, fault;
// or callId. Its state is writing, done, stopped or failed.

import { complete } from './api.js';
import { dropDraft, emptyDraft, loadDraft, saveDraft } from './draft.js';
import { Generation } from './generation.js';
import { requestOf } from './sampling.js';
import * as store from './store.js';
import { newestBelow, pathTo, siblingsOf, titleOf } from './tree.js';

const channel = new BroadcastChannel('calla');
const unsent = 'new'; // the id of the draft of a conversation that is none yet

export class Conversations extends EventTarget {
  list = [];
  current = null; // null is a new conversation
  messages = new Map(); // of the current one, by id
  draft = emptyDraft(unsent);
  model = () => ''; // the name that requests ask for
  opened = false; // whether open has come to an end once
  #running = new Map(); // Generation by conversation id
  #unkept = new Set(); // answers of which the disk has not all yet
  #turn = 0; // of the newest open

  async start() {
    this.list = sorted(await store.allConversations());
    channel.onmessage = () => this.#reload();
    this.#tell('list');
  }

  // reload takes over what another tab has changed.
  async #reload() {
    this.list = sorted(await store.allConversations());
    this.#tell('list');
    const id = this.current?.id;
    if (id && !this.#running.has(id)) await this.open(id);
  }

  /** open shows a conversation, or a new one where there is none of that id. */
  async open(id) {
    const turn = ++this.#turn;
    const conversation = this.list.find((c) => c.id === id) ?? null;
    const messages = conversation ? await store.messagesOf(conversation.id) : [];
    const draft = await loadDraft(conversation?.id ?? unsent);
    await endInterrupted(messages);
    if (turn !== this.#turn) return;
    this.current = conversation;
    this.messages = new Map(messages.map((m) => [m.id, m]));
    const running = this.#running.get(conversation?.id)?.message;
    if (running) this.messages.set(running.id, running);
    this.draft = draft;
    this.opened = true;
    this.#tell('open');
  }

  get path() { return this.current ? pathTo(this.messages, this.current.head) : []; }

  /** settings of the open conversation, or of the one that begins next. */
  get settings() { return this.current?.settings ?? this.draft.settings ?? {}; }

  set settings(settings) {
    if (this.current) {
      this.current.settings = settings;
      this.#keep([]);
      return;
    }
    this.draft.settings = settings;
    saveDraft(this.draft);
  }

  get writing() { return this.#running.has(this.current?.id); }

  type(text) {
    this.draft.text = text;
    saveDraft(this.draft);
  }

  attach(files) {
    this.draft.files = files;
    saveDraft(this.draft);
  }

  typeEdit(id, text) {
    if (text === null) delete this.draft.edits[id];
    else this.draft.edits[id] = text;
    saveDraft(this.draft);
  }

  /** send turns the draft into a message and has it answered. */
  async send() {
    const draft = this.draft;
    if (this.writing || !draft.text.trim() && draft.files.length === 0) return;
    if (!this.current) this.#begin(draft.settings ?? {});
    const message = this.#add('user', this.current.head, { text: draft.text, files: draft.files });
    this.current.title ||= titleOf(message);
    const next = { ...emptyDraft(this.current.id), edits: draft.edits };
    this.draft = next;
    await this.#answer([message], () => {
      // Only now: until here the draft is what would be left of the message.
      if (draft.id !== next.id) dropDraft(draft.id);
      saveDraft(next);
    });
  }

  #begin(settings) {
    const now = Date.now();
    this.current = { id: newId(), title: '', created: now, updated: now, head: null, settings };
    this.list.unshift(this.current);
    navigator.storage?.persist?.();
  }

  #add(role, parent, more) {
    const message = {
      id: newId(), conversation: this.current.id, parent, role, created: Date.now(), state: 'done', ...more,
    };
    this.messages.set(message.id, message);
    this.current.head = message.id;
    this.current.updated = message.created;
    return message;
  }

  /** edit says an earlier message in other words; the old ones stay as a version. */
  async edit(message, text) {
    if (this.writing || !text.trim()) return;
    const version = this.#add('user', message.parent, { text, files: message.files });
    await this.#answer([version], () => this.typeEdit(message.id, null));
  }

  /** retry answers the message before an answer once more. */
  async retry(message) {
    if (!this.writing) await this.#answer([this.messages.get(message.parent)]);
  }

  /** giveResults says what the tool calls of a message came to; the model goes on from there. */
  async giveResults(message) {
    if (this.writing) return;
    const added = [];
    for (const call of message.calls) {
      const parent = added.at(-1) ?? message;
      added.push(this.#add('tool', parent.id, { text: this.typedResult(message, call), callId: call.id, name: call.name }));
    }
    await this.#answer(added);
  }

  /** typedResult returns what was typed as the result of a call and not sent yet. */
  typedResult(message, call) {
    return this.draft.results[`${message.id} ${call.id}`] ?? '';
  }

  typeResult(message, call, text) {
    this.draft.results[`${message.id} ${call.id}`] = text;
    saveDraft(this.draft);
  }

  /** show makes the newest path through a version the one that is shown. */
  async show(message) {
    if (this.writing) return;
    this.current.head = newestBelow(this.messages, message.id);
    this.#tell('open');
    await this.#keep([]);
  }

  versions(message) {
    return siblingsOf(this.messages, message);
  }

  // answer has the path that ends with the given messages answered. kept is
  // called once they are on disk.
  async #answer(messages, kept) {
    const conversation = this.current;
    const last = messages.at(-1).id;
    const request = requestOf(conversation, pathTo(this.messages, last), this.model());
    const message = this.#add('assistant', last, { state: 'writing', text: '', reasoning: '', calls: [] });
    const generation = new Generation(message, (signal) => complete(request, signal));
    this.#running.set(conversation.id, generation);
    this.#unkept.add(message);
    this.#tell('list');
    this.#tell('open');
    const changed = () => { if (this.current === conversation) this.#tell('message', message); };
    await whileAlive(message, async () => {
      if (await this.#keep([...messages, message], conversation)) kept?.();
      await generation.run({ changed, keep: () => store.putMessages([message]) });
      this.#running.delete(conversation.id);
      changed();
      this.#tell('list');
      await this.#keep([message], conversation);
    });
    this.#unkept.delete(message);
    localStorage.removeItem(lockOf(message)); // of a page that was left and came back
  }

  stop() {
    this.#running.get(this.current?.id)?.stop();
  }

  /** leave keeps what there is of every answer, as the page is about to close: too late for the store. */
  leave() {
    for (const message of this.#unkept) {
      try {
        localStorage.setItem(lockOf(message), JSON.stringify(message));
      } catch { /* no room; what was kept last has to do */ }
    }
  }

  async rename(conversation, title) {
    conversation.title = title.trim() || conversation.title;
    this.#tell('list');
    if (await store.putConversation(conversation)) channel.postMessage('changed');
  }

  async remove(conversation) {
    this.#running.get(conversation.id)?.stop();
    this.list = this.list.filter((c) => c !== conversation);
    localStorage.removeItem(`calla.draft.${conversation.id}`);
    this.#tell('list');
    const removed = await store.deleteConversation(conversation.id);
    if (this.current === conversation) await this.open(null);
    if (removed) channel.postMessage('changed');
  }

  // keep writes messages and their conversation down and tells other tabs.
  async #keep(messages, conversation = this.current) {
    if (!this.list.includes(conversation)) return false; // removed meanwhile
    this.list = sorted(this.list);
    const kept = await store.putMessages(messages, conversation);
    if (kept) channel.postMessage('changed');
    return kept;
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

// A lock tells tabs, the next one among them, that an answer is being written;
// the browser takes it back when the page is closed or fails. A page that is
// not at localhost may have no locks, nor a source of ids.
const lockOf = (message) => `calla.answer.${message.id}`;

const whileAlive = (message, work) => (navigator.locks ? navigator.locks.request(lockOf(message), work) : work());

// endInterrupted takes over what leave kept, and marks answers that nobody
// writes any more.
async function endInterrupted(messages) {
  const left = messages.filter((m) => m.state === 'writing' || localStorage.getItem(lockOf(m)));
  if (left.length === 0) return;
  const held = new Set((await navigator.locks?.query())?.held.map((lock) => lock.name));
  for (const m of left) {
    if (held.has(lockOf(m))) continue;
    Object.assign(m, JSON.parse(localStorage.getItem(lockOf(m))));
    if (m.state === 'writing') Object.assign(m, { state: 'failed', fault: { code: 'closed', message: '' } });
    if (await store.putMessages([m])) localStorage.removeItem(lockOf(m));
  }
}

const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, '0')).join('');

const sorted = (list) => [...list].sort((a, b) => b.updated - a.updated);
