package server

import (
	"encoding/json"
	"fmt"
	"strings"

	"calla/core/chat"
)

// anthropicTurn is a message of Anthropic's.
type anthropicTurn struct {
	Role    string           `json:"role"`
	Content anthropicContent `json:"content"`
}

// anthropicContent is blocks, or a text, which is one block.
type anthropicContent []anthropicBlock

type anthropicBlock struct {
	Type      string           `json:"type"`
	Text      string           `json:"text"`
	Thinking  string           `json:"thinking"`
	ID        string           `json:"id"`
	Name      string           `json:"name"`
	Input     json.RawMessage  `json:"input"`
	ToolUseID string           `json:"tool_use_id"`
	Content   anthropicContent `json:"content"`
	IsError   bool             `json:"is_error"`
}

func (c *anthropicContent) UnmarshalJSON(raw []byte) error {
	if raw[0] == '"' {
		*c = anthropicContent{{Type: "text"}}
		return json.Unmarshal(raw, &(*c)[0].Text)
	}
	return json.Unmarshal(raw, (*[]anthropicBlock)(c))
}

func textVariant() variant {
	return variant{values: []string{"text"}, fields: object{
		{Name: "text", Takes: text{}, Required: true},
		{Name: "citations", Takes: only{"[]"}, Note: "there are none"},
		cacheControl(),
	}}
}

func textBlock() shape { return tagged{tag: "type", cases: []variant{textVariant(), unreadable()}} }

func unreadable() variant {
	return variant{values: []string{"image", "document", "search_result", "container_upload"}, refused: textOnly}
}

func anthropicMessagesField() Field {
	user := tagged{tag: "type", cases: []variant{
		textVariant(),
		{values: []string{"tool_result"}, fields: object{
			{Name: "tool_use_id", Takes: text{min: 1}, Required: true, Note: "a call of the assistant's message before"},
			{Name: "content", Takes: either{text{}, list{of: textBlock()}}, Note: "texts are joined as they are"},
			{Name: "is_error", Takes: boolean{}, Note: "true puts `Error: ` before the result: the model's template has no such flag"},
			cacheControl(),
		}},
		unreadable(),
	}}
	assistant := tagged{tag: "type", cases: []variant{
		textVariant(),
		{values: []string{"thinking"}, fields: object{
			{Name: "thinking", Takes: text{}, Required: true},
			{Name: "signature", Takes: only{`""`}, Note: "thoughts are not signed here"},
		}},
		{values: []string{"tool_use"}, fields: object{
			{Name: "id", Takes: text{min: 1}, Required: true},
			{Name: "name", Takes: identifier{}, Required: true},
			{Name: "input", Takes: free{}, Required: true},
			{Name: "caller", Takes: only{`{"type":"direct"}`}, Note: "the model itself calls"},
			cacheControl(),
		}},
		{values: []string{"redacted_thinking"}, refused: "only its maker can read it"},
		{values: []string{"server_tool_use", "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
			"bash_code_execution_tool_result", "text_editor_code_execution_tool_result", "tool_search_tool_result"}, refused: "nothing is run here"},
		unreadable(),
	}}
	content := func(block shape) object {
		return object{{Name: "content", Takes: either{text{}, list{of: block}}, Required: true}}
	}
	return Field{Name: "messages", Required: true, Takes: list{min: 1, of: tagged{tag: "role", cases: []variant{
		{values: []string{"user"}, fields: content(user)},
		{values: []string{"assistant"}, fields: content(assistant)},
		{values: []string{"system"}, fields: content(textBlock())},
	}}}, Note: "a conversation of texts that ends with the user: images and documents are a 400; going on with the assistant's own words is a 400. A system message is one more text of system, and a 400 after the start"}
}

// billing begins the text by which Claude Code tells Anthropic whom to bill. It
// differs in each request, at the very start of the prompt.
const billing = "x-anthropic-billing-header:"

// conversation turns system and messages into the model's messages.
func (c *messagesRequest) conversation() (*conversation, *apiError) {
	conv := &conversation{}
	if err := conv.anthropicSystem("system", c.System); err != nil {
		return nil, err
	}
	for i, turn := range c.Messages {
		origin := fmt.Sprintf("messages[%d]", i)
		var err *apiError
		switch turn.Role {
		case "system":
			err = conv.anthropicSystem(origin, turn.Content)
		case "user":
			err = conv.anthropicUser(origin, turn.Content)
		case "assistant":
			err = conv.anthropicAssistant(origin, turn.Content)
		}
		if err != nil {
			return nil, err
		}
	}
	if last := len(c.Messages) - 1; c.Messages[last].Role == "assistant" {
		at := fmt.Sprintf("messages[%d].role", last)
		return nil, badField(codeUnsupValue, at, "%s: the last message is the assistant's; going on with it is not supported", at)
	}
	return conv, conv.settle()
}

func (c *conversation) anthropicSystem(origin string, content anthropicContent) *apiError {
	for _, b := range content {
		if strings.HasPrefix(b.Text, billing) {
			_, rest, _ := strings.Cut(b.Text, "\n")
			if b.Text = rest; rest == "" {
				continue
			}
		}
		if err := c.system(origin, chat.Text(b.Text)); err != nil {
			return err
		}
	}
	return nil
}

// anthropicUser adds a user's message: results of tools, and texts.
func (c *conversation) anthropicUser(origin string, content anthropicContent) *apiError {
	var texts []chat.Part
	said := len(content) == 0 // an empty message is one all the same
	for j, b := range content {
		if b.Type == "text" {
			texts, said = append(texts, chat.Part{Text: b.Text}), true
			continue
		}
		at := fmt.Sprintf("%s.content[%d]", origin, j)
		if said {
			return badField(codeValue, at, "%s: results of tools come before texts", at)
		}
		var result []chat.Part
		if b.IsError {
			result = chat.Text("Error: ")
		}
		for _, part := range b.Content {
			result = append(result, chat.Part{Text: part.Text})
		}
		if _, err := c.result(at, "tool_use_id", b.ToolUseID, result); err != nil {
			return err
		}
	}
	if !said {
		return nil
	}
	return c.user(origin, texts)
}

func (c *conversation) anthropicAssistant(origin string, content anthropicContent) *apiError {
	var m chat.Message
	for _, b := range content {
		switch b.Type {
		case "text":
			m.Content = append(m.Content, chat.Part{Text: b.Text})
		case "thinking":
			thought := b.Thinking
			if m.Reasoning != nil {
				thought = *m.Reasoning + "\n\n" + thought
			}
			m.Reasoning = &thought
		}
	}
	if err := c.assistant(origin, m); err != nil {
		return err
	}
	for j, b := range content {
		if b.Type != "tool_use" {
			continue
		}
		at := fmt.Sprintf("%s.content[%d]", origin, j)
		if err := c.call(at, b.ID, chat.ToolCall{Name: b.Name, Arguments: b.Input}); err != nil {
			return err
		}
	}
	return nil
}
