// One answer on its way: what the stream says goes into its message.

import { Fault } from './api.js';

const keepEvery = 700; // ms

export class Generation {
  #abort = new AbortController();
  #stream;
  #begun = performance.now();
  #first = 0; // when the first word came
  #last = 0;

  /** stream starts the request; it is given the signal that ends it. */
  constructor(message, stream) {
    this.message = message;
    this.#stream = stream;
  }

  stop() {
    this.#abort.abort();
  }

  /**
   * run returns when the answer has ended, well or not. changed is called with
   * each step, keep now and then.
   */
  async run({ changed, keep }) {
    let kept = this.#begun;
    try {
      for await (const chunk of this.#stream(this.#abort.signal)) {
        this.#take(chunk);
        changed();
        if (performance.now() - kept < keepEvery) continue;
        kept = performance.now();
        keep();
      }
      this.message.state = 'done';
    } catch (error) {
      this.#fail(error);
    }
    delete this.message.progress;
    this.#measure();
  }

  #fail(error) {
    if (error.name === 'AbortError') {
      this.message.state = 'stopped';
      return;
    }
    if (!(error instanceof Fault)) console.error(error); // a mistake of the page's own
    this.message.state = 'failed';
    this.message.fault = {
      code: error.code ?? 'unreadable', message: error.message, param: error.param, retryAfter: error.retryAfter,
    };
  }

  #take(chunk) {
    const m = this.message;
    if (chunk.progress) m.progress = chunk.progress;
    if (chunk.usage) m.usage = usageOf(chunk.usage);
    const choice = chunk.choices?.[0];
    if (!choice) return;
    const { content, reasoning_content: thought, tool_calls: calls } = choice.delta ?? {};
    if (content || thought || calls) this.#timed();
    if (thought) m.reasoning += thought;
    if (content) {
      if (m.reasoning && !m.text) m.thought = (performance.now() - this.#first) / 1000;
      m.text += content;
    }
    for (const call of calls ?? []) takeCall(m.calls, call);
    if (choice.finish_reason) m.finish = choice.finish_reason;
    if (choice.warning) m.warning = choice.warning;
  }

  #timed() {
    this.#last = performance.now();
    this.#first ||= this.#last;
    delete this.message.progress;
  }

  // measure notes how long the answer took, in seconds.
  #measure() {
    if (!this.#first) return;
    const m = this.message;
    if (m.reasoning && m.thought === undefined) m.thought = (this.#last - this.#first) / 1000;
    m.timing = { first: (this.#first - this.#begun) / 1000, writing: (this.#last - this.#first) / 1000 };
  }
}

function takeCall(calls, delta) {
  const call = calls[delta.index] ??= { id: '', name: '', arguments: '' };
  call.id ||= delta.id ?? '';
  call.name ||= delta.function?.name ?? '';
  call.arguments += delta.function?.arguments ?? '';
}

function usageOf(usage) {
  return {
    prompt: usage.prompt_tokens,
    cached: usage.prompt_tokens_details?.cached_tokens ?? 0,
    completion: usage.completion_tokens,
    reasoning: usage.completion_tokens_details?.reasoning_tokens ?? 0,
  };
}
