// Elements, made without HTML: the page's policy allows nothing else.

/**
 * el makes an element. Properties that begin with "on" are listeners, the
 * others attributes; true is an attribute without a value, and false, null and
 * undefined leave it out, as they do with children.
 */
export function el(tag, props, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : String(value));
  }
  node.append(...present(children));
  return node;
}

/** fill makes an element have these children and no others. */
export function fill(node, ...children) {
  node.replaceChildren(...present(children));
}

// present returns children that are there, lists of them taken apart.
const present = (children) => children.flat().filter((c) => c !== undefined && c !== null && c !== false && c !== '');

/** svg is el for drawings. */
export function svg(tag, props, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(props ?? {})) node.setAttribute(name, String(value));
  node.append(...children);
  return node;
}

// Strokes in a square of 24 by 24.
const strokes = {
  send: 'M12 19V5M6 11l6-6 6 6',
  stop: 'M8 8h8v8H8z',
  menu: 'M4 7h16M4 12h16M4 17h10',
  attach: 'M12 5v14M5 12h14',
  close: 'M6 6l12 12M18 6 6 18',
  previous: 'M14 7l-5 5 5 5',
  next: 'M10 7l5 5-5 5',
};

/** icon draws one of the page's icons; what it means is said beside it. */
export function icon(name) {
  return svg('svg', { viewBox: '0 0 24 24', class: 'icon', 'aria-hidden': 'true' }, svg('path', { d: strokes[name] }));
}

export const byId = (id) => document.getElementById(id);

/** announce has screen readers say something. */
export function announce(words) {
  byId('announcer').textContent = words;
}

/** notice shows a line above everything until it is closed or replaced. */
export function notice(key, words, action) {
  const box = byId('notices');
  box.querySelector(`[data-key="${key}"]`)?.remove();
  if (!words) return;
  const close = el('button', { type: 'button', class: 'icon-button', 'aria-label': 'Close this notice' }, icon('close'));
  const line = el('div', { class: 'notice', role: 'alert', 'data-key': key }, el('p', null, words), action, close);
  close.addEventListener('click', () => line.remove());
  box.append(line);
}

/** copy puts text on the clipboard and says so on the button that asked. */
export async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copyBySelection(text); // pages reached by another name than localhost have no clipboard
  }
  const label = button.textContent;
  button.textContent = 'Copied';
  announce('Copied');
  setTimeout(() => { button.textContent = label; }, 1500);
}

function copyBySelection(text) {
  const area = el('textarea', { class: 'visually-hidden', 'aria-hidden': 'true' });
  area.value = text;
  document.body.append(area);
  const before = document.activeElement;
  area.select();
  document.execCommand('copy');
  area.remove();
  before?.focus();
}
