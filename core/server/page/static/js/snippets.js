// How other programs are connected. The settings of apps are those that their
// own documentation has; each entry names the page.

/** languages returns the same request in several languages. */
export function languages({ base, model, key }) {
  return [
    { name: 'curl', code: `curl ${base}/chat/completions \\
  -H 'Content-Type: application/json' \\${key ? `\n  -H 'Authorization: Bearer ${key}' \\` : ''}
  -d '{"model": "${model}", "messages": [{"role": "user", "content": "Hello"}]}'` },
    { name: 'Python', note: 'With the openai package.', code: `from openai import OpenAI

client = OpenAI(base_url="${base}", api_key="${key || 'none'}")
reply = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "Hello"}],
)
print(reply.choices[0].message.content)` },
    { name: 'Node', note: 'With the openai package.', code: `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${base}", apiKey: "${key || 'none'}" });
const reply = await client.chat.completions.create({
  model: "${model}",
  messages: [{ role: "user", content: "Hello" }],
});
console.log(reply.choices[0].message.content);` },
    { name: 'Go', note: 'With github.com/openai/openai-go/v3.', code: `client := openai.NewClient(
	option.WithBaseURL("${base}"),
	option.WithAPIKey("${key || 'none'}"),
)
reply, err := client.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{
	Model:    "${model}",
	Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hello")},
})
if err != nil {
	return err
}
fmt.Println(reply.Choices[0].Message.Content)` },
  ];
}

/** apps returns the settings of apps that people connect. */
export function apps({ base, model, key, context }) {
  return [
    { name: 'Open WebUI', page: 'docs.openwebui.com, “Connect a Provider”',
      note: 'Admin Settings, Connections, OpenAI, Manage, Add New Connection. In a container, put host.docker.internal in place of localhost and allow that name with --allow-host.',
      code: `URL      ${base}\nAPI Key  ${key || 'none'}` },
    { name: 'Continue', page: 'docs.continue.dev, “OpenAI”', note: 'In config.yaml.', code: `models:
  - name: Calla
    provider: openai
    model: ${model}
    apiBase: ${base}
    apiKey: ${key || 'none'}` },
    { name: 'Zed', page: 'zed.dev/docs, “Use API Access”', note: 'In settings.json. Zed takes the key from its provider settings or from CALLA_API_KEY.',
      code: JSON.stringify({
        language_models: { openai_compatible: { calla: { api_url: base, available_models: [{ name: model, display_name: 'Calla', max_tokens: context }] } } },
      }, null, 2) },
    { name: 'aider', page: 'aider.chat/docs, “OpenAI compatible APIs”', note: 'In a terminal.', code: `export OPENAI_API_BASE=${base}
export OPENAI_API_KEY=${key || 'none'}
aider --model openai/${model}` },
    { name: 'llm', page: 'llm.datasette.io, “Other models”', note: 'In extra-openai-models.yaml, in the folder that llm logs path names.' + (key ? ' Store the key with llm keys set calla.' : ''),
      code: `- model_id: calla
  model_name: ${model}
  api_base: ${base}${key ? '\n  api_key_name: calla' : ''}` },
  ];
}
