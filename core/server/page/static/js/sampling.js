// The settings of a conversation: one table for the form, its checks and the
// request. An empty setting leaves the choice to the server.

import { apiMessages } from './tree.js';

/** efforts are the values of "thinking" with what people read. */
export const efforts = [
  ['', 'No thinking'], ['minimal', 'Minimal, 512 tokens'], ['low', 'Low, 2,048 tokens'], ['medium', 'Medium, 8,192 tokens'],
  ['high', 'High, 24,576 tokens'], ['xhigh', 'Very high, 65,536 tokens'], ['max', 'Without a limit'],
];

/** numbers are the settings that are numbers. */
export const numbers = [
  { name: 'temperature', label: 'Temperature', min: 0, max: 2, step: 0.1, note: '0 always takes the likeliest word' },
  { name: 'top_p', label: 'Top p', min: 0, max: 1, step: 0.05, note: 'of the likeliest words, those that make up this share' },
  { name: 'top_k', label: 'Top k', min: 0, max: 1000, step: 1, note: 'at most so many words to choose from; 0 is all' },
  { name: 'min_p', label: 'Min p', min: 0, max: 1, step: 0.01, note: 'no word less likely than this share of the likeliest' },
  { name: 'presence_penalty', label: 'Presence penalty', min: -2, max: 2, step: 0.1, note: 'against words that were used' },
  { name: 'frequency_penalty', label: 'Frequency penalty', min: -2, max: 2, step: 0.1, note: 'against words, the more they were used' },
  { name: 'repetition_penalty', label: 'Repetition penalty', min: 0.1, max: 10, step: 0.05, note: '1 is off' },
  { name: 'max_completion_tokens', label: 'Longest answer', min: 1, max: 2147483647, step: 1, note: 'in tokens, thinking included' },
  { name: 'seed', label: 'Seed', min: -9007199254740991, max: 9007199254740991, step: 1, note: 'the same seed gives the same answer' },
];

/** checkTools returns what is wrong with a text of tools, or "". */
export function checkTools(text) {
  if (!text.trim()) return '';
  let tools;
  try {
    tools = JSON.parse(text);
  } catch (error) {
    return `This is not JSON: ${error.message}`;
  }
  if (!Array.isArray(tools)) return 'This is no list: put the tools into [ ].';
  const bad = tools.findIndex((t) => t?.type !== 'function' || typeof t.function?.name !== 'string');
  return bad < 0 ? '' : `Tool ${bad + 1} is not of the form {"type": "function", "function": {"name": …}}.`;
}

/** requestOf makes the request for an answer to a path. */
export function requestOf(conversation, path, model) {
  const s = conversation.settings;
  const request = {
    model, messages: apiMessages(path, s.system ?? ''), stream: true,
    stream_options: { include_usage: true, include_progress: true },
    prompt_cache_key: conversation.id,
  };
  for (const { name } of numbers) {
    if (typeof s[name] === 'number') request[name] = s[name];
  }
  if (s.thinking) request.reasoning_effort = s.thinking;
  if (s.tools?.trim() && !checkTools(s.tools)) request.tools = JSON.parse(s.tools);
  return request;
}
