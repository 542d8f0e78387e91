// Markdown as elements. The parser's tokens become elements of a fixed list
// with text in them; HTML in the source is text like any other, and nothing
// ever goes from text to HTML.

import MarkdownIt from '../vendor/markdown-it.mjs';
import { el } from './dom.js';

const parser = new MarkdownIt({ html: false, linkify: true });
parser.linkify.set({ fuzzyEmail: false, fuzzyIP: false });

const plainTags = new Set(['p', 'ul', 'ol', 'li', 'blockquote', 'hr', 'br', 'strong', 'em', 's', 'thead', 'tbody', 'tr', 'th', 'td']);

/** Prose shows Markdown in an element and follows it while it grows. */
export class Prose {
  #blocks = []; // {source, nodes} of each block at the top, in order

  constructor(element) {
    this.element = element;
  }

  /**
   * show makes the element show source. Blocks whose source is the same as
   * before keep their elements, so that a selection in them stays and a long
   * answer does not cost more with every word.
   */
  show(source) {
    const blocks = blocksOf(source);
    let same = 0;
    while (same < blocks.length && blocks[same].source === this.#blocks[same]?.source) same++;
    for (const block of this.#blocks.splice(same)) block.node.remove();
    for (const block of blocks.slice(same)) {
      block.node = build(block.tokens);
      this.element.append(block.node);
      this.#blocks.push({ source: block.source, node: block.node });
    }
  }
}

// blocksOf parses source and cuts it at its top level.
function blocksOf(source) {
  const lines = source.split('\n');
  const blocks = [];
  const found = {};
  let tokens = [];
  const all = parser.parse(source, found);
  // Where links lead is part of a block: what it refers to may come after it.
  const references = JSON.stringify(found.references ?? '');
  for (const token of all) {
    tokens.push(token);
    if (token.level !== 0 || token.nesting > 0) continue;
    const [from, to] = tokens[0].map ?? [0, lines.length];
    blocks.push({ tokens, source: [tokens[0].type, references, ...lines.slice(from, to)].join('\n') });
    tokens = [];
  }
  return blocks;
}

// build makes the element of one block.
function build(tokens) {
  const root = el('div', { class: 'block' });
  const stack = [root];
  for (const token of tokens) step(stack, token);
  return root;
}

function step(stack, token) {
  const top = stack.at(-1);
  if (token.type === 'inline') {
    const inner = [top];
    for (const child of token.children) step(inner, child);
    return;
  }
  if (token.nesting < 0) {
    stack.pop();
    return;
  }
  const node = elementOf(token);
  top.append(node);
  if (token.nesting > 0) stack.push(inside(node));
}

// inside returns where the content of an element goes.
const inside = (node) => (node.classList?.contains('table') ? node.firstChild : node);

function elementOf(token) {
  switch (token.type) {
    case 'text': return document.createTextNode(token.content);
    case 'softbreak': return document.createTextNode('\n');
    case 'code_inline': return el('code', { dir: 'ltr' }, token.content);
    case 'fence': return codeBlock(token.content, token.info.trim().split(/\s+/)[0]);
    case 'code_block': return codeBlock(token.content, '');
    case 'heading_open': return el(`h${Math.min(6, Number(token.tag[1]) + 2)}`, { dir: directionOf(token) });
    case 'link_open': return link(token.attrGet('href'), token.attrGet('title'));
    case 'image': return link(token.attrGet('src'), null, token.content || token.attrGet('src'));
    case 'table_open': return el('div', { class: 'table', role: 'region', 'aria-label': 'Table', tabindex: 0 }, el('table', { dir: directionOf(token) }));
  }
  if (plainTags.has(token.tag)) return plain(token);
  return document.createTextNode(token.content);
}

// directionOf has each block at the top run as its own text does. What is inside
// leaves its direction to the style: an element looks for its own only in what
// has none.
const directionOf = (token) => (token.block && token.level === 0 ? 'auto' : null);

function plain(token) {
  if (token.hidden) return el('span', { class: 'line' }); // a paragraph of a tight list
  const node = el(token.tag, { dir: directionOf(token), start: token.attrGet('start') });
  const align = /text-align:(left|right|center)/.exec(token.attrGet('style') ?? '');
  if (align) node.style.textAlign = align[1];
  return node;
}

// link leads to another page, which learns nothing of this one; addresses of
// other kinds stay text. A picture is a link too: showing it would ask its
// server for it.
function link(href, title, text = '') {
  if (!/^(https?:|mailto:)/i.test(href ?? '')) return el('span', null, text);
  return el('a', { href, title: title ?? href, target: '_blank', rel: 'noopener noreferrer nofollow' }, text);
}

function codeBlock(code, language) {
  const text = code.replace(/\n$/, '');
  const name = /^[\w+#.-]{1,24}$/.test(language) ? language : '';
  return el('figure', { class: 'code', dir: 'ltr' },
    el('figcaption', null, el('span', null, name || 'text'),
      el('button', { type: 'button', class: 'copy', 'data-copy': 'code', 'aria-label': `Copy the ${name} code`.replace('  ', ' ') }, 'Copy')),
    el('pre', { tabindex: 0, role: 'region', 'aria-label': `Code${name && ', ' + name}` }, el('code', null, text)));
}
