"""LiteLLM, which calls the server as one of its openai models."""
import json
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # asks nobody for prices

import litellm
import openai

from lines import refused, serve, url

litellm.suppress_debug_info = True


def answer(question):
    messages = question["messages"]
    params = {"model": "openai/" + question["model"], "api_base": url, "api_key": "none", "num_retries": 0, "timeout": 240}
    extra = question.get("extra") or {}
    if question.get("thinking"):
        extra["chat_template_kwargs"] = {"enable_thinking": True}
    if extra:
        params["extra_body"] = extra
    if question.get("tools"):
        params["tools"] = question["tools"]
    calls, deltas = [], 0
    try:
        while True:
            if question["stream"]:
                chunks = list(litellm.completion(messages=messages, stream=True, stream_options={"include_usage": True}, **params))
                deltas = sum(bool(c.choices and c.choices[0].delta.content) for c in chunks)
                got = litellm.stream_chunk_builder(chunks, messages=messages)
            else:
                got = litellm.completion(messages=messages, **params)
            (choice,) = got.choices
            message = choice.message
            if not message.tool_calls:
                break
            messages.append(message)
            for call in message.tool_calls:
                calls.append({"name": call.function.name, "arguments": json.loads(call.function.arguments)})
                messages.append({"role": "tool", "tool_call_id": call.id, "content": question["result"]})
    except openai.APIStatusError as e:  # LiteLLM's own errors are kinds of these
        return refused(e.status_code, e.body)
    return {
        "text": message.content, "reasoning": getattr(message, "reasoning_content", None) or "", "calls": calls,
        "finish": choice.finish_reason, "deltas": deltas,
        "prompt_tokens": got.usage.prompt_tokens, "completion_tokens": got.usage.completion_tokens,
    }


serve(lambda: openai.OpenAI(base_url=url, api_key="none").models.list().data[0].id.split(), answer)
