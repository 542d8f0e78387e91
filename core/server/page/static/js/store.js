// What the browser keeps, in IndexedDB:
//
//   conversations  id → title, settings, head, times
//   messages       id → one message; indexed by conversation
//   drafts         conversation → what is typed and not sent, with its files
//
// A write that fails is reported to onFailure and otherwise lets the page go on.

import { notice } from './dom.js';

const stores = {
  conversations: { keyPath: 'id' },
  messages: { keyPath: 'id' },
  drafts: { keyPath: 'id' },
};

let opening = null;

function open() {
  opening ??= new Promise((resolve, reject) => {
    const request = indexedDB.open('calla', 1);
    request.onupgradeneeded = () => {
      for (const [name, options] of Object.entries(stores)) request.result.createObjectStore(name, options);
      request.transaction.objectStore('messages').createIndex('conversation', 'conversation');
    };
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
    request.onblocked = () => reject(new Error('another tab holds an older version open'));
  });
  return opening;
}

// within runs work on some stores and returns once all of it is on disk.
async function within(names, mode, work) {
  const db = await open();
  return new Promise((resolve, reject) => {
    const transaction = db.transaction(names, mode, { durability: 'strict' });
    const request = work(...names.map((name) => transaction.objectStore(name)));
    transaction.oncomplete = () => resolve(request?.result);
    transaction.onabort = transaction.onerror = () => reject(transaction.error);
  });
}

async function read(names, work, otherwise) {
  try {
    return await within(names, 'readonly', work) ?? otherwise;
  } catch (error) {
    failed(error);
    return otherwise;
  }
}

async function write(names, work) {
  try {
    await within(names, 'readwrite', work);
    return true;
  } catch (error) {
    failed(error);
    return false;
  }
}

function failed(error) {
  const full = error?.name === 'QuotaExceededError';
  notice('store', full
    ? 'The browser has no room left for conversations. Delete some, or make room on the disk; until then nothing new is kept.'
    : 'The browser does not let this page keep conversations, so they are lost when it is closed. A private window does that; open the page in a normal one.');
}

export const allConversations = () => read(['conversations'], (c) => c.getAll(), []);
export const putConversation = (conversation) => write(['conversations'], (c) => c.put(conversation));

export const messagesOf = (id) => read(['messages'], (m) => m.index('conversation').getAll(id), []);

/** putMessages keeps messages and the conversation that has changed with them, or none of it. */
export function putMessages(messages, conversation) {
  return write(['messages', 'conversations'], (m, c) => {
    for (const message of messages) m.put(message);
    if (conversation) c.put(conversation);
  });
}

export function deleteConversation(id) {
  return write(['conversations', 'messages', 'drafts'], (c, m, d) => {
    c.delete(id);
    d.delete(id);
    m.index('conversation').openKeyCursor(id).onsuccess = (event) => {
      const cursor = event.target.result;
      if (!cursor) return;
      m.delete(cursor.primaryKey);
      cursor.continue();
    };
  });
}

export const draftOf = (id) => read(['drafts'], (d) => d.get(id), null);
export const putDraft = (draft) => write(['drafts'], (d) => d.put(draft));
export const deleteDraft = (id) => write(['drafts'], (d) => d.delete(id));
