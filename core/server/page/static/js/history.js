// The throughput of the last hour, minute by minute, as this page has seen it.
// A minute is {minute, decode, prefill}: its start in ms, and the highest rates
// in it, in tokens a second.

import { minutesSince, putMinute } from './store.js';

const minuteLong = 60_000;
export const minutesShown = 60;

export class History extends EventTarget {
  #minutes = new Map();
  #last = null; // time of the last answer that was counted

  constructor(feed) {
    super();
    feed.addEventListener('status', () => this.#note(feed.status));
  }

  async start() {
    for (const m of await minutesSince(this.#oldest())) this.#raise(m.minute, m);
  }

  #oldest(now = Date.now()) {
    return (Math.floor(now / minuteLong) - minutesShown + 1) * minuteLong;
  }

  #note(status) {
    if (!status) return;
    const { now, last } = status.throughput;
    this.#add(Date.now(), now);
    if (last && last.at !== this.#last) {
      this.#last = last.at;
      this.#add(Date.parse(last.at), last);
    }
  }

  #add(time, rates) {
    if (!rates.decode_tokens_per_s && !rates.prefill_tokens_per_s || time < this.#oldest()) return;
    const minute = Math.floor(time / minuteLong) * minuteLong;
    const entry = this.#raise(minute, { decode: rates.decode_tokens_per_s, prefill: rates.prefill_tokens_per_s });
    putMinute(entry, this.#oldest());
  }

  #raise(minute, { decode, prefill }) {
    const before = this.#minutes.get(minute) ?? { minute, decode: 0, prefill: 0 };
    const entry = { minute, decode: Math.max(before.decode, decode), prefill: Math.max(before.prefill, prefill) };
    this.#minutes.set(minute, entry);
    return entry;
  }

  /** hour returns the last sixty minutes, oldest first; those without an answer are zero. */
  hour(now = Date.now()) {
    const oldest = this.#oldest(now);
    return Array.from({ length: minutesShown }, (_, i) => {
      const minute = oldest + i * minuteLong;
      return this.#minutes.get(minute) ?? { minute, decode: 0, prefill: 0 };
    });
  }
}
