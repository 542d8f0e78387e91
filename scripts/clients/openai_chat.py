"""OpenAI's SDK for Python, chat completions."""
import json

import openai

from lines import refused, serve, url

client = openai.OpenAI(base_url=url, api_key="none", max_retries=0, timeout=240)


def whole(params):
    got = client.chat.completions.create(**params)
    (choice,) = got.choices
    return choice.message, {"finish": choice.finish_reason, **usage(got.usage)}


def streamed(params):
    deltas = 0
    with client.chat.completions.stream(stream_options={"include_usage": True}, **params) as stream:
        for event in stream:
            deltas += event.type == "content.delta" and event.delta != ""
        got = stream.get_final_completion()
    (choice,) = got.choices
    return choice.message, {"finish": choice.finish_reason, "deltas": deltas, **usage(got.usage)}


def usage(u):
    return {"prompt_tokens": u.prompt_tokens, "completion_tokens": u.completion_tokens}


def answer(question):
    messages = question["messages"]
    extra = question.get("extra") or {}
    if question.get("thinking"):
        extra["chat_template_kwargs"] = {"enable_thinking": True}
    params = {"model": question["model"], "extra_body": extra}
    if question.get("tools"):
        params["tools"] = question["tools"]
    ask = streamed if question["stream"] else whole
    calls = []
    try:
        while True:
            message, told = ask({"messages": messages, **params})
            if not message.tool_calls:
                break
            messages.append(message)
            for call in message.tool_calls:
                calls.append({"name": call.function.name, "arguments": json.loads(call.function.arguments)})
                messages.append({"role": "tool", "tool_call_id": call.id, "content": question["result"]})
    except openai.APIStatusError as e:
        return refused(e.status_code, e.body)
    reasoning = getattr(message, "reasoning_content", None)
    return {"text": message.content, "reasoning": reasoning or "", "calls": calls, **told}


serve(lambda: [m.id for m in client.models.list()], answer)
