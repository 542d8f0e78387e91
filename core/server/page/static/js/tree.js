// A conversation is a tree of messages: a message that is edited or answered
// again gets a sibling, and nothing is thrown away. What is shown is the path
// from the root to the conversation's head. Everything here is pure.

/** pathTo returns the messages from the root to id. */
export function pathTo(messages, id) {
  const path = [];
  for (let m = messages.get(id); m; m = messages.get(m.parent)) path.unshift(m);
  return path;
}

/** childrenOf returns the messages that follow id, oldest first; null is the root. */
export function childrenOf(messages, id) {
  return [...messages.values()].filter((m) => m.parent === id).sort((a, b) => a.created - b.created);
}

/** siblingsOf returns the versions of a message, itself among them. */
export function siblingsOf(messages, message) {
  return childrenOf(messages, message.parent).filter((m) => m.role === message.role);
}

/** newestBelow returns the id of the last message of the newest path through id. */
export function newestBelow(messages, id) {
  for (;;) {
    const below = childrenOf(messages, id);
    if (below.length === 0) return id;
    id = below.at(-1).id;
  }
}

/** titleOf makes a conversation's name of its first message. */
export function titleOf(message) {
  const line = message.text.trim().split('\n')[0] || message.files?.[0]?.name || 'Conversation';
  return line.length > 70 ? line.slice(0, 69).trimEnd() + '…' : line;
}

/** apiMessages returns a path as the API takes it. */
export function apiMessages(path, system) {
  const out = system.trim() ? [{ role: 'system', content: system }] : [];
  for (const m of path) {
    if (m.role === 'user') out.push({ role: 'user', content: contentOf(m) });
    else if (m.role === 'tool') out.push({ role: 'tool', tool_call_id: m.callId, content: m.text });
    else if (m.text || m.calls.length) out.push(assistantMessage(m));
  }
  return out;
}

function assistantMessage(m) {
  const message = { role: 'assistant', content: m.text || null };
  if (m.reasoning) message.reasoning_content = m.reasoning;
  if (m.calls.length) {
    message.tool_calls = m.calls.map((c) => ({
      id: c.id, type: 'function', function: { name: c.name, arguments: c.arguments },
    }));
  }
  return message;
}

// contentOf puts files before the words about them, so that the same files
// make the same prefix.
function contentOf(m) {
  const files = (m.files ?? []).map((f) => {
    const fence = fenceFor(f.text);
    return `File ${f.name}:\n${fence}\n${f.text}${f.text.endsWith('\n') ? '' : '\n'}${fence}\n`;
  });
  return [...files, m.text].filter((part) => part !== '').join('\n');
}

// fenceFor returns a fence longer than any run of backticks in text.
function fenceFor(text) {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map((run) => run[0].length));
  return '`'.repeat(longest + 1);
}
