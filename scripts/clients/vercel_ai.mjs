// Vercel's AI SDK, which runs tools itself, over its provider for servers that
// speak OpenAI's API.
import {createOpenAICompatible} from '@ai-sdk/openai-compatible';
import {APICallError, generateText, jsonSchema, stepCountIs, streamText, tool} from 'ai';
import {refused, serve, url} from './lines.mjs';

async function answer({model, messages, stream, thinking, tools, result, extra}) {
  const provider = createOpenAICompatible({
    name: 'calla', baseURL: url, includeUsage: true,
    transformRequestBody: body => ({...body, ...extra, ...(thinking && {chat_template_kwargs: {enable_thinking: true}})}),
  });
  const calls = [];
  const params = {
    model: provider(model), maxRetries: 0, stopWhen: stepCountIs(4),
    system: messages.filter(m => m.role === 'system').map(m => m.content).join('') || undefined,
    messages: messages.filter(m => m.role !== 'system'),
    tools: Object.fromEntries((tools ?? []).map(({function: f}) => [f.name, tool({
      description: f.description, inputSchema: jsonSchema(f.parameters),
      execute: async input => {
        calls.push({name: f.name, arguments: input});
        return result;
      },
    })])),
  };
  try {
    let deltas = 0;
    let got;
    if (stream) {
      let failed;
      got = streamText({...params, onError: ({error}) => { failed = error; }});
      for await (const part of got.fullStream) deltas += part.type === 'text-delta' ? 1 : 0;
      if (failed) throw failed;
    } else {
      got = await generateText(params);
    }
    const used = await got.usage;
    return {
      text: await got.text, reasoning: (await got.reasoningText) ?? '', calls, finish: await got.finishReason, deltas,
      prompt_tokens: used.inputTokens, completion_tokens: used.outputTokens,
    };
  } catch (e) {
    if (APICallError.isInstance(e)) return refused(e.statusCode, e.data?.error ?? JSON.parse(e.responseBody).error);
    throw e;
  }
}

async function models() {
  const got = await (await fetch(url + '/models')).json();
  return got.data.map(m => m.id);
}

await serve(models, answer);
