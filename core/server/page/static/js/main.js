// The page's start: its parts, wired together, and its addresses:
//
//   #/        a new conversation
//   #/c/ID    a conversation
//   #/status  the status

import { Chat } from './chat.js';
import { Composer } from './composer.js';
import { Conversations } from './conversations.js';
import { byId } from './dom.js';
import { Feed } from './feed.js';
import { Settings } from './settings.js';
import { Sidebar } from './sidebar.js';
import { StatusView } from './statusview.js';

const conversations = new Conversations();
const feed = new Feed();
const chat = new Chat(conversations, feed);
new Composer(conversations, chat);
const sidebar = new Sidebar(conversations, feed);
const statusView = new StatusView(feed, chat, sidebar);
new Settings(conversations);

conversations.model = () => feed.status?.model.id ?? lastModel();
feed.watched = () => statusView.shown;
feed.addEventListener('status', () => {
  if (feed.status) localStorage.setItem('calla.model', feed.status.model.id);
});

// lastModel is the name of the model that was served last, for requests that
// are made while the server does not answer.
const lastModel = () => localStorage.getItem('calla.model') ?? 'calla';

async function route() {
  const [, place, id] = location.hash.split('/');
  const status = place === 'status';
  byId('chat').hidden = status;
  byId('status').hidden = !status;
  sidebar.at(status);
  if (status) {
    statusView.draw();
    feed.now();
    byId('status-title').focus();
    document.title = 'Status – Calla';
    return;
  }
  const wanted = place === 'c' ? id : null;
  if (wanted !== (conversations.current?.id ?? null) || !conversations.opened) await conversations.open(wanted);
  byId('composer-text').focus({ preventScroll: true });
}

// A conversation that has just begun gets its address; the way back leads to
// an empty one.
conversations.addEventListener('open', () => {
  const { current } = conversations;
  if (current && !location.hash.endsWith(current.id) && byId('status').hidden) {
    history.pushState(null, '', `#/c/${current.id}`);
  }
});

addEventListener('hashchange', route);
addEventListener('pagehide', () => conversations.leave());
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && !event.isComposing && conversations.writing && !document.querySelector('dialog[open]')) {
    event.preventDefault();
    conversations.stop();
  }
});
byId('skip').addEventListener('click', (event) => {
  event.preventDefault();
  (byId('chat').hidden ? byId('status-title') : byId('composer-text')).focus();
});

await conversations.start();
await route();
await feed.start();
