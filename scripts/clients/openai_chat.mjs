// OpenAI's SDK for JavaScript, chat completions.
import OpenAI from 'openai';
import {refused, serve, url} from './lines.mjs';

const client = new OpenAI({baseURL: url, apiKey: 'none', maxRetries: 0, timeout: 240_000});

async function whole(params) {
  return {got: await client.chat.completions.create(params)};
}

async function streamed(params) {
  let deltas = 0;
  let reasoning = '';
  const stream = client.chat.completions.stream({...params, stream_options: {include_usage: true}});
  stream.on('content', () => deltas++);
  // Of fields that it does not know the SDK's own sum keeps the last.
  stream.on('chunk', chunk => { reasoning += chunk.choices[0]?.delta.reasoning_content ?? ''; });
  return {got: await stream.finalChatCompletion(), deltas, reasoning};
}

async function answer({model, messages, stream, thinking, tools, result, extra}) {
  const params = {model, ...extra};
  if (thinking) params.chat_template_kwargs = {enable_thinking: true};
  if (tools) params.tools = tools;
  const calls = [];
  try {
    for (;;) {
      const {got, deltas, reasoning} = await (stream ? streamed : whole)({...params, messages});
      const {message, finish_reason: finish} = got.choices[0];
      if (!message.tool_calls?.length) {
        return {
          text: message.content, reasoning: reasoning ?? message.reasoning_content ?? '', calls, finish, deltas,
          prompt_tokens: got.usage.prompt_tokens, completion_tokens: got.usage.completion_tokens,
        };
      }
      messages.push(message);
      for (const call of message.tool_calls) {
        calls.push({name: call.function.name, arguments: JSON.parse(call.function.arguments)});
        messages.push({role: 'tool', tool_call_id: call.id, content: result});
      }
    }
  } catch (e) {
    if (e instanceof OpenAI.APIError && e.status) return refused(e.status, e);
    throw e;
  }
}

async function models() {
  const ids = [];
  for await (const m of client.models.list()) ids.push(m.id);
  return ids;
}

await serve(models, answer);
