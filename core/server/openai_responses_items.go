package server

import (
	"encoding/json"

	"calla/core/chat"
)

// responsesInput is a text, or items.
type responsesInput struct {
	text  *string
	items []responsesItem
}

func (i *responsesInput) UnmarshalJSON(raw []byte) error {
	if raw[0] == '"' {
		return json.Unmarshal(raw, &i.text)
	}
	return json.Unmarshal(raw, &i.items)
}

// responsesItem is a message, a thought, a call or a call's result.
type responsesItem struct {
	Type      string        `json:"type"` // "" is a message
	Role      string        `json:"role"`
	Content   openAIContent `json:"content"`
	CallID    string        `json:"call_id"`
	Name      string        `json:"name"`
	Arguments string        `json:"arguments"`
	Output    openAIContent `json:"output"`
}

// inputText is the content of an item: a text, or parts that are text.
var inputText = either{text{}, list{of: tagged{tag: "type", cases: []variant{
	{values: []string{"input_text", "output_text"}, fields: object{
		{Name: "text", Takes: text{}, Required: true, Note: "parts are joined as they are"},
		{Name: "annotations", Takes: only{"[]"}, Note: "there are none"},
		{Name: "logprobs", Takes: list{of: free{}}, Note: "taken back as answers have them"},
		{Name: "prompt_cache_breakpoint", Note: "the prefix cache finds its own places"},
	}},
	{values: []string{"input_image", "input_file", "input_audio"}, refused: textOnly},
	{values: []string{"refusal"}, refused: "the model's template has no refusals"},
}}}}

// itemFields are those of all items that answers give and that mean nothing to
// the model.
var itemFields = object{
	{Name: "id", Takes: text{}, Note: "taken back as answers have it"},
	{Name: "status", Takes: oneOf{"completed", "incomplete", "in_progress"}, Note: "taken back as answers have it"},
}

var inputItem = tagged{tag: "type", absent: "message", cases: []variant{
	{values: []string{"message"}, fields: join(object{
		{Name: "role", Takes: oneOf{"user", "assistant", "system", "developer"}, Required: true, Note: "developer is system; system messages at the start become one, later ones are a 400"},
		{Name: "content", Takes: inputText, Required: true},
		{Name: "phase", Note: "the model's template has no phases"},
	}, itemFields)},
	{values: []string{"reasoning"}, fields: join(object{
		{Name: "content", Takes: list{of: tagged{tag: "type", cases: []variant{
			{values: []string{"reasoning_text"}, fields: object{{Name: "text", Takes: text{}, Required: true}}},
		}}}, Note: "the thought before what follows, as answers have it"},
		{Name: "summary", Takes: only{"[]"}, Note: "thoughts are given whole, as reasoning_text"},
		{Name: "encrypted_content", Note: "thoughts are given in the clear, as reasoning_text"},
	}, itemFields)},
	{values: []string{"function_call"}, fields: join(object{
		{Name: "call_id", Takes: text{min: 1}, Required: true},
		{Name: "name", Takes: identifier{}, Required: true},
		{Name: "arguments", Takes: text{}, Required: true, Note: "a JSON object in a string"},
		{Name: "namespace", Note: "only functions are called"},
		{Name: "caller", Takes: only{`{"type":"direct"}`}, Note: "the model itself calls"},
	}, itemFields), note: "belongs to the message or thought before it"},
	{values: []string{"function_call_output"}, fields: join(object{
		{Name: "call_id", Takes: text{min: 1}, Required: true, Note: "of a call before it"},
		{Name: "output", Takes: inputText, Required: true},
		{Name: "name", Takes: text{}, Note: "must be the called function's"},
		{Name: "namespace", Note: "only functions are called"},
		{Name: "caller", Takes: only{`{"type":"direct"}`}, Note: "the model itself calls"},
	}, itemFields)},
	{values: []string{"item_reference"}, refused: "nothing is stored: send the item itself"},
	{values: []string{
		"custom_tool_call", "custom_tool_call_output", "file_search_call", "web_search_call", "computer_call", "computer_call_output",
		"code_interpreter_call", "image_generation_call", "local_shell_call", "local_shell_call_output", "shell_call", "shell_call_output",
		"apply_patch_call", "apply_patch_call_output", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "mcp_call",
		"tool_search_call", "tool_search_output", "additional_tools", "compaction",
	}, refused: "only functions are called"},
}}

// responsesItem adds one item. Of what the model wrote in one turn, each item
// is its own; the template has one message a turn.
func (c *conversation) responsesItem(origin string, item responsesItem) *apiError {
	switch item.Type {
	case "reasoning":
		thought := plainText(item.Content)
		return c.assistant(origin, chat.Message{Reasoning: &thought})
	case "function_call":
		if _, err := c.turn(origin, false); err != nil {
			return err
		}
		args, err := arguments(origin+".arguments", item.Arguments)
		if err != nil {
			return err
		}
		return c.call(origin, item.CallID, chat.ToolCall{Name: item.Name, Arguments: args})
	case "function_call_output":
		name, err := c.result(origin, "call_id", item.CallID, item.Output)
		if err == nil && item.Name != "" && item.Name != name {
			err = badField(codeValue, origin+".name", "%s.name is not the name of the function that was called", origin)
		}
		return err
	}
	switch item.Role {
	case "user":
		return c.user(origin, item.Content)
	case "assistant":
		m, err := c.turn(origin, true)
		if err == nil {
			m.Content = item.Content
		}
		return err
	}
	return c.system(origin, item.Content)
}

// turn returns the assistant's message that an item belongs to: the last one,
// if it is still growing, or a new one. Content comes once, before calls.
func (c *conversation) turn(origin string, content bool) (*chat.Message, *apiError) {
	if n := len(c.messages); n > 0 {
		last := &c.messages[n-1]
		grows := last.Role == "assistant" && !c.answered()
		if grows && (!content || last.Content == nil && last.ToolCalls == nil) {
			return last, nil
		}
	}
	if err := c.assistant(origin, chat.Message{}); err != nil {
		return nil, err
	}
	return &c.messages[len(c.messages)-1], nil
}

// answered reports whether an open call has its result.
func (c *conversation) answered() bool {
	for _, p := range c.open {
		if p.result != nil {
			return true
		}
	}
	return false
}

func plainText(parts []chat.Part) string {
	var s string
	for _, p := range parts {
		s += p.Text
	}
	return s
}
