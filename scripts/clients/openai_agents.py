"""OpenAI's Agents SDK, which runs tools itself and speaks OpenAI's responses."""
import asyncio
import json

import agents
import openai

from lines import function, refused, serve, url

agents.set_tracing_disabled(True)
client = openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0, timeout=240)


async def run(question):
    calls = []

    def tool(f):
        async def invoke(_, arguments):
            calls.append({"name": f["name"], "arguments": json.loads(arguments)})
            return question["result"]
        return agents.FunctionTool(
            name=f["name"], description=f["description"], params_json_schema=f["parameters"],
            on_invoke_tool=invoke, strict_json_schema=False)

    extra = question.get("extra") or {}
    agent = agents.Agent(
        name="tester",
        instructions="".join(m["content"] for m in question["messages"] if m["role"] == "system") or None,
        model=agents.OpenAIResponsesModel(model=question["model"], openai_client=client),
        tools=[tool(function(t)) for t in question.get("tools") or []],
        model_settings=agents.ModelSettings(
            extra_body=extra or None,
            reasoning=openai.types.Reasoning(effort="high") if question.get("thinking") else None,
        ),
    )
    messages = [m for m in question["messages"] if m["role"] != "system"]
    deltas = 0
    try:
        if question["stream"]:
            got = agents.Runner.run_streamed(agent, messages)
            async for event in got.stream_events():
                deltas += event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
        else:
            got = await agents.Runner.run(agent, messages)
    except openai.APIStatusError as e:
        return refused(e.status_code, e.body)
    reasoning = "".join(
        part.text for item in got.new_items if item.type == "reasoning_item" for part in item.raw_item.content or [])
    last = got.raw_responses[-1].usage
    return {
        "text": got.final_output, "reasoning": reasoning, "calls": calls, "deltas": deltas,
        "prompt_tokens": last.input_tokens, "completion_tokens": last.output_tokens,
    }


loop = asyncio.new_event_loop()


async def models():
    return [m.id async for m in client.models.list()]


serve(lambda: loop.run_until_complete(models()), lambda question: loop.run_until_complete(run(question)))
