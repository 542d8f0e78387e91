package server

import (
	"encoding/json"
	"fmt"
	"math"

	"calla/core/chat"
	"calla/core/server/strictjson"
)

// openAIMessage is a message of OpenAI's chat completions.
type openAIMessage struct {
	Role             string           `json:"role"`
	Content          openAIContent    `json:"content"`
	Name             *string          `json:"name"`
	ReasoningContent *string          `json:"reasoning_content"`
	ToolCalls        []openAIToolCall `json:"tool_calls"`
	ToolCallID       string           `json:"tool_call_id"`
}

type openAIToolCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// openAIContent is a string, or parts.
type openAIContent []chat.Part

func (c *openAIContent) UnmarshalJSON(raw []byte) error {
	if raw[0] == '"' {
		var s string
		err := json.Unmarshal(raw, &s)
		*c = chat.Text(s)
		return err
	}
	var parts []struct {
		Text string `json:"text"`
	}
	err := json.Unmarshal(raw, &parts)
	for _, p := range parts {
		*c = append(*c, chat.Part{Text: p.Text})
	}
	return err
}

const textOnly = "the model reads text only"

func contentField(note string) Field {
	return Field{Name: "content", Takes: either{text{}, list{of: tagged{tag: "type", cases: []variant{
		{values: []string{"text"}, fields: object{
			{Name: "text", Takes: text{}, Required: true, Note: "parts are joined as they are"},
			{Name: "prompt_cache_breakpoint", Note: "the prefix cache finds its own places"},
		}},
		{values: []string{"image_url", "input_audio", "file", "video_url"}, refused: textOnly},
		{values: []string{"refusal"}, refused: "the model's template has no refusals"},
	}}}}, Note: note}
}

func messagesField() Field {
	unnamed := Field{Name: "name", Note: "the model's template has no names"}
	return Field{Name: "messages", Required: true, Takes: list{min: 1, of: tagged{tag: "role", cases: []variant{
		{values: []string{"system", "developer"}, fields: object{
			contentField("null and none are empty. System messages at the start become one; later ones are a 400, as the model's template has it"),
			unnamed,
		}},
		{values: []string{"user"}, fields: object{contentField("null and none are empty"), unnamed}},
		{values: []string{"assistant"}, fields: object{
			contentField("null and none are empty"),
			{Name: "reasoning_content", Takes: text{}, Note: "beside OpenAI's fields; the thought before the content, as answers have it"},
			toolCallsField(),
			{Name: "parsed", Takes: free{}, Note: "taken: OpenAI's SDK for Python repeats the content in it"},
			{Name: "refusal", Note: "the model's template has no refusals"},
			{Name: "annotations", Takes: only{"[]"}, Note: "there are none"},
			{Name: "audio", Note: textOnly},
			{Name: "function_call", Note: "use tool_calls"},
			unnamed,
		}},
		{values: []string{"tool"}, fields: object{
			contentField("null and none are empty"),
			{Name: "tool_call_id", Takes: text{min: 1}, Required: true, Note: "a call of the assistant's message before; results are put in the order of the calls"},
			{Name: "name", Takes: text{}, Note: "must be the called function's"},
		}},
		{values: []string{"function"}, refused: "use the role tool"},
	}}}, Note: "a conversation of texts: images, audio, files and names are a 400"}
}

func toolCallsField() Field {
	return Field{Name: "tool_calls", Takes: list{of: tagged{tag: "type", absent: "function", cases: []variant{
		{values: []string{"function"}, fields: object{
			{Name: "id", Takes: text{min: 1}, Required: true, Note: "of the call that a tool message answers"},
			{Name: "index", Takes: integer{0, math.MaxInt32}, Note: "taken: streams have it, and OpenAI's SDK for Python repeats it; the list's order counts"},
			{Name: "function", Required: true, Takes: object{
				{Name: "name", Takes: identifier{}, Required: true},
				{Name: "arguments", Takes: text{}, Required: true, Note: "a JSON object in a string; an empty string is an empty object"},
				{Name: "parsed_arguments", Takes: free{}, Note: "taken: OpenAI's SDK for Python repeats the arguments in it"},
			}},
		}},
		{values: []string{"custom"}, refused: "only functions are called"},
	}}}, Note: "each needs its result in a tool message after it"}
}

// openAIConversation turns OpenAI's messages into the model's.
func openAIConversation(messages []openAIMessage) (*conversation, *apiError) {
	c := &conversation{}
	for i, m := range messages {
		origin := fmt.Sprintf("messages[%d]", i)
		var err *apiError
		switch m.Role {
		case "system", "developer":
			err = c.system(origin, m.Content)
		case "user":
			err = c.user(origin, m.Content)
		case "assistant":
			err = c.openAIAssistant(origin, m)
		case "tool":
			var name string
			name, err = c.result(origin, "tool_call_id", m.ToolCallID, m.Content)
			if err == nil && m.Name != nil && *m.Name != name {
				err = badField(codeValue, origin+".name", "%s.name is not the name of the function that was called", origin)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return c, c.settle()
}

func (c *conversation) openAIAssistant(origin string, m openAIMessage) *apiError {
	if err := c.assistant(origin, chat.Message{Content: m.Content, Reasoning: m.ReasoningContent}); err != nil {
		return err
	}
	for j, call := range m.ToolCalls {
		at := fmt.Sprintf("%s.tool_calls[%d]", origin, j)
		args, err := arguments(at+".function.arguments", call.Function.Arguments)
		if err != nil {
			return err
		}
		if err := c.call(at, call.ID, chat.ToolCall{Name: call.Function.Name, Arguments: args}); err != nil {
			return err
		}
	}
	return nil
}

// isObject reports whether raw is a JSON object, exactly.
func isObject(raw []byte) bool {
	v, err := strictjson.Parse(raw, strictjson.Limits{Depth: maxDepth, Values: maxValues})
	return err == nil && v.Kind == strictjson.Object
}
