"""LangChain's ChatOpenAI."""
import openai
from langchain_core.messages import ToolMessage
from langchain_openai import ChatOpenAI

from lines import refused, serve, url


def answer(question):
    extra = question.get("extra") or {}
    if question.get("thinking"):
        extra["chat_template_kwargs"] = {"enable_thinking": True}
    model = ChatOpenAI(
        model=question["model"], base_url=url, api_key="none", max_retries=0, timeout=240,
        stream_usage=True, extra_body=extra or None,
    )
    if question.get("tools"):
        model = model.bind_tools(question["tools"])
    messages, calls, deltas = question["messages"], [], 0
    try:
        while True:
            if question["stream"]:
                got, deltas = None, 0
                for chunk in model.stream(messages):
                    deltas += chunk.content != ""
                    got = chunk if got is None else got + chunk
            else:
                got = model.invoke(messages)
            if not got.tool_calls:
                break
            messages.append(got)
            for call in got.tool_calls:
                calls.append({"name": call["name"], "arguments": call["args"]})
                messages.append(ToolMessage(question["result"], tool_call_id=call["id"]))
    except openai.APIStatusError as e:
        return refused(e.status_code, e.body)
    return {
        "text": got.content, "calls": calls, "finish": got.response_metadata["finish_reason"], "deltas": deltas,
        "prompt_tokens": got.usage_metadata["input_tokens"], "completion_tokens": got.usage_metadata["output_tokens"],
    }


serve(lambda: [m.id for m in openai.OpenAI(base_url=url, api_key="none").models.list()], answer)
