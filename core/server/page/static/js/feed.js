// The engine's status, asked for again and again: often where something is
// going on that people look at, seldom in a tab that nobody sees.

import { status } from './api.js';

export class Feed extends EventTarget {
  status = null; // null: no server answers
  fault = null; // why not
  watched = () => false; // whether people look at the numbers
  #timer = 0;
  #asked = false; // for a key; once is enough unless someone sends a message

  start() {
    document.addEventListener('visibilitychange', () => { if (!document.hidden) this.now(); });
    return this.now();
  }

  /** now asks at once. */
  async now() {
    clearTimeout(this.#timer);
    try {
      this.status = await status(this.#asked);
      this.fault = null;
    } catch (fault) {
      this.status = null;
      this.fault = fault;
      if (fault.code === 'invalid_api_key') this.#asked = true;
    }
    this.dispatchEvent(new Event('status'));
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.now(), this.#pause());
  }

  #pause() {
    if (document.hidden) return 30_000;
    const lively = this.watched() || !this.status || ['busy', 'loading', 'stopping'].includes(this.status.state);
    return lively ? 1000 : 5000;
  }
}
