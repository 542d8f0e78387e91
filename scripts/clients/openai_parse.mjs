// The parse helpers of OpenAI's SDK for JavaScript, with Zod: answers and
// arguments come back as objects that a schema was checked on.
import OpenAI from 'openai';
import {zodFunction, zodResponseFormat, zodTextFormat} from 'openai/helpers/zod';
import {z} from 'zod';
import {refused, serve, url} from './lines.mjs';

const client = new OpenAI({baseURL: url, apiKey: 'none', maxRetries: 0, timeout: 240_000});

const Place = z.object({city: z.string().max(20), zip: z.string().regex(/^[0-9]{5}$/).nullable()});

const Record = z.object({
  name: z.string().max(20),
  age: z.number().int().min(0).max(150),
  score: z.number().min(0).max(1),
  kind: z.enum(['person', 'company']),
  place: Place,
  friends: z.array(Place).max(2),
});

const GetWeather = z.object({city: z.string().max(20)});

async function parsed({model, messages, stream, tools, responses}) {
  if (tools) {
    const got = await client.chat.completions.parse({
      model, messages, tool_choice: 'required', parallel_tool_calls: false,
      tools: [zodFunction({name: 'get_weather', description: 'Get the current weather in a city.', parameters: GetWeather})],
    });
    return got.choices[0].message.tool_calls[0].function.parsed_arguments;
  }
  if (responses) {
    const got = await client.responses.parse({model, input: messages, text: {format: zodTextFormat(Record, 'record')}});
    return got.output_parsed;
  }
  const params = {model, messages, response_format: zodResponseFormat(Record, 'record')};
  const got = stream ? await client.chat.completions.stream(params).finalChatCompletion() : await client.chat.completions.parse(params);
  return got.choices[0].message.parsed;
}

async function answer(question) {
  try {
    return await parsed(question);
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
