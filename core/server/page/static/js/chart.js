// A small bar chart of an hour.

import { el, svg } from './dom.js';
import { clock, rate } from './format.js';

const width = 600;
const height = 72;

/** chart draws one rate of the minutes of an hour; minutes without it stay empty. */
export function chart(title, minutes, field) {
  const most = minutes.reduce((a, b) => (b[field] > a[field] ? b : a));
  const top = most[field];
  const summary = top ? `At most ${rate(top)}, at ${clock(most.minute)}` : 'Nothing in the last hour';
  const step = width / minutes.length;
  const bars = minutes.flatMap((m, i) => {
    if (!m[field]) return [];
    const h = Math.max(m[field] / top * height, 2);
    return svg('rect', { x: i * step + 1, y: height - h, width: step - 2, height: h, rx: 1 });
  });
  const drawing = svg('svg', {
    viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', class: `chart ${field}`, role: 'img',
    'aria-label': `${title} in the last hour. ${summary}.`,
  }, ...bars);
  return el('figure', { class: 'charted' },
    el('figcaption', null, el('span', null, title), el('span', { class: 'quiet' }, summary)), drawing,
    el('div', { class: 'axis', 'aria-hidden': 'true' }, el('span', null, clock(minutes[0].minute)), el('span', null, 'now')));
}
