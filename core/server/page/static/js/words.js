// What people read where something went wrong: what it is, and what to do.

import { bytes, count, day } from './format.js';

const start = 'Start it again from the menu bar or with calla serve.';

const faults = {
  unreachable: ['Calla is not running.', start + ' Your message is kept here; then try again.'],
  cut_off: ['The answer was cut off: the engine ended while it wrote.', 'What had come is kept. ' + start + ' Then try again.'],
  closed: ['The page was closed while the answer was being written.', 'What had come is kept. Try again for a whole answer.'],
  queue_full: ['Too many requests are waiting.', 'Try again in a moment, or end what other programs have asked for.'],
  stopped: ['The engine is stopping.', 'Wait until it has started again, then try again.'],
  context_length_exceeded: ['The conversation is too long for the model.', 'Start a new conversation, shorten an earlier message or leave out a file. A larger --max-seq makes room, at the cost of memory.'],
  device_stuck: ['The device no longer answers.', start],
  device_error: ['The device failed during the answer.', 'Try again. If it goes on, start Calla again; its log says more.'],
  not_a_number: ['The model’s output became meaningless, so the answer was ended.', 'Try again. If it goes on, verify the model’s files.'],
  internal_error: ['Something failed within the server.', 'Try again. The server’s log says where it failed.'],
  invalid_api_key: ['The server needs its API key.', 'Try again and enter the key.'],
  request_too_large: ['The message is too large to be sent.', 'Leave out a file, or shorten the message.'],
  model_not_found: ['The server has another model now.', 'Try again; the page has taken note of its name.'],
  host_not_allowed: ['The server does not know itself by the name in the address bar.', 'Open it as http://localhost with its port, or start it with --allow-host.'],
  origin_not_allowed: ['The server does not take requests from this address.', 'Open it as http://localhost with its port.'],
  unreadable: ['What answered is not Calla.', 'Another program may have taken the port. End it, start Calla again, then try again.'],
};

/** faultWords says what a fault is and what to do, as two sentences or more. */
export function faultWords(fault) {
  let [what, remedy] = faults[fault.code] ?? [`The server refused the request: ${fault.message}.`, 'Change what it names, then try again.'];
  if (!faults[fault.code] && fault.param) remedy = `Change “${fault.param}” in the settings, then try again.`;
  if (fault.code === 'context_length_exceeded') what += ` The server says: ${fault.message}.`;
  if (fault.retryAfter) remedy = `Try again in ${fault.retryAfter} seconds. ` + remedy.replace('Try again in a moment, or', 'Or');
  return { what, remedy };
}

/** remedyFor is what to do about an error that the status lists. */
export function remedyFor(code) {
  return faults[code]?.[1] ?? 'The server’s log says more.';
}

const states = {
  loading: 'Loading the model', ready: 'Ready', busy: 'Answering', unloaded: 'Idle, memory freed',
  stuck: 'Not responding', stopping: 'Stopping', failed: 'Failed',
};

/** stateWords says how the engine is; null is a server that does not answer. */
export function stateWords(status) {
  if (!status) return 'Not running';
  if (status.state === 'loading' && status.progress?.total) {
    return `Loading ${Math.floor(100 * status.progress.done / status.progress.total)} %`;
  }
  return states[status.state] ?? status.state;
}

/** stateRemedy is what to do about a state, or "". */
export function stateRemedy(status) {
  if (!status) return start;
  switch (status.state) {
    case 'unloaded': return 'The next message loads the model again, which takes a moment.';
    case 'stuck':
    case 'failed': return start;
    case 'stopping': return 'Messages can be sent once it has started again.';
  }
  return '';
}

const sources = { downloaded: 'downloaded', found: 'found on this machine' };

/** receiptWords says how far the model's files are known to be right, and which they are. */
export function receiptWords(receipt) {
  const { source, repository, revision, pinned, verified_at: at } = receipt;
  if (source === 'unverified') return ['Never verified', 'The server loaded the files of a folder as they are. calla verify compares those of the published model with their digests.'];
  const files = `${count(receipt.files)} files, ${bytes(receipt.bytes)}, ${receipt.digest}`;
  if (source === 'built in') return ['Built into the program', files];
  const digests = pinned ? 'every digest is the one that the program knows' : 'every digest is that of its list';
  return [at ? `Verified on ${day(at)}` : 'Verified', `${repository}, revision ${revision}, ${sources[source]}; ${digests}. ${files}`];
}

/** slowWords says what makes answers slower than they could be, or "". */
export function slowWords({ thermal, low_power: saving }) {
  const hot = thermal === 'serious' || thermal === 'critical';
  if (!hot && !saving) return '';
  return `The machine ${[hot && 'is hot', saving && 'saves power'].filter(Boolean).join(' and ')}: answers are slower.`;
}

/** progressWords says how far a request is before its first word. */
export function progressWords(p) {
  const percent = p.total ? ` ${Math.floor(100 * p.done / p.total)} %` : '';
  switch (p.stage) {
    case 'queued': return p.done === 1 ? 'Waiting for another request' : `Waiting for ${p.done} other requests`;
    case 'loading': return 'Loading the model again' + percent;
    case 'prefill': return 'Reading' + (p.total > 512 ? percent : '');
  }
  return 'Writing';
}

/** endWords says why an answer ended, where that is worth a word. */
export function endWords(message) {
  if (message.state === 'stopped') return 'You stopped the answer here.';
  return message.finish === 'length' ? 'The answer ended at its limit of tokens.' : '';
}
