// What is typed and not sent yet: the message, its files, edits of earlier
// messages, results of tool calls, and the settings of a conversation to come. All but the files is
// kept twice, because a page may be closed the moment after a key is pressed:
// at once where writing is immediate but room is small, and a moment later where
// there is room for everything. The newer one counts.

import { deleteDraft, draftOf, putDraft } from './store.js';

const place = (id) => `calla.draft.${id}`;

export const emptyDraft = (id) => ({ id, text: '', files: [], edits: {}, results: {}, settings: null, at: 0 });

/** loadDraft returns the draft of a conversation. */
export async function loadDraft(id) {
  const kept = { ...emptyDraft(id), ...await draftOf(id) };
  const quick = quickDraft(id);
  return quick && quick.at > kept.at ? { ...kept, ...quick } : kept;
}

function quickDraft(id) {
  try {
    return JSON.parse(localStorage.getItem(place(id)));
  } catch {
    return null;
  }
}

const waiting = new Map();

/** saveDraft keeps a draft. */
export function saveDraft(draft) {
  draft.at = Date.now();
  try {
    localStorage.setItem(place(draft.id), JSON.stringify({ ...draft, files: undefined }));
  } catch {
    localStorage.removeItem(place(draft.id)); // too long for it; the store below has room
  }
  clearTimeout(waiting.get(draft.id));
  waiting.set(draft.id, setTimeout(() => putDraft(structuredClone(draft)), 150));
}

/** dropDraft forgets a draft, once what it held is kept elsewhere. */
export function dropDraft(id) {
  clearTimeout(waiting.get(id));
  localStorage.removeItem(place(id));
  return deleteDraft(id);
}
