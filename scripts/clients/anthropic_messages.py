"""Anthropic's SDK for Python."""
import anthropic

from lines import function, refused, serve, url

client = anthropic.Anthropic(base_url=url.removesuffix("/v1"), api_key="none", max_retries=0, timeout=240)
finish = {"end_turn": "stop", "max_tokens": "length", "tool_use": "tool_calls"}


def whole(params):
    return client.messages.create(**params), 0


def streamed(params):
    deltas = 0
    with client.messages.stream(**params) as stream:
        for event in stream:
            deltas += event.type == "text"
        return stream.get_final_message(), deltas


def answer(question):
    system = [m["content"] for m in question["messages"] if m["role"] == "system"]
    messages = [m for m in question["messages"] if m["role"] != "system"]
    params = {"model": question["model"], "max_tokens": 1000, "extra_body": question.get("extra")}
    if system:
        params["system"] = system[0]
    if question.get("thinking"):
        params["thinking"] = {"type": "enabled", "budget_tokens": 1024}
        params["max_tokens"] = 2048
    if question.get("tools"):
        params["tools"] = [
            {"name": f["name"], "description": f["description"], "input_schema": f["parameters"]}
            for f in map(function, question["tools"])
        ]
    ask = streamed if question["stream"] else whole
    calls = []
    try:
        while True:
            got, deltas = ask({"messages": messages, **params})
            if got.stop_reason != "tool_use":
                break
            results = []
            for block in got.content:
                if block.type == "tool_use":
                    calls.append({"name": block.name, "arguments": block.input})
                    results.append({"type": "tool_result", "tool_use_id": block.id, "content": question["result"]})
            messages = [*messages, {"role": "assistant", "content": got.content}, {"role": "user", "content": results}]
    except anthropic.APIStatusError as e:
        return refused(e.status_code, {"code": e.body["error"]["type"]})
    text = "".join(b.text for b in got.content if b.type == "text")
    reasoning = "".join(b.thinking for b in got.content if b.type == "thinking")
    prompt = got.usage.input_tokens + (got.usage.cache_read_input_tokens or 0)
    return {
        "text": text, "reasoning": reasoning, "calls": calls, "finish": finish[got.stop_reason], "deltas": deltas,
        "prompt_tokens": prompt, "completion_tokens": got.usage.output_tokens,
    }


serve(lambda: [m.id for m in client.models.list()], answer)
