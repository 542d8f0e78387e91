package server

import (
	"bytes"
	"encoding/json"
)

// openAITool is a tool of OpenAI's chat completions; raw is the whole of it, as
// the model's template prints it.
type openAITool struct {
	raw    json.RawMessage
	name   string
	strict bool
}

func (t *openAITool) UnmarshalJSON(raw []byte) error {
	var tool struct {
		Function struct {
			Name   string `json:"name"`
			Strict bool   `json:"strict"`
		} `json:"function"`
	}
	err := json.Unmarshal(raw, &tool)
	t.raw, t.name, t.strict = append(t.raw, raw...), tool.Function.Name, tool.Function.Strict
	return err
}

// maxTools bounds the tools of one request.
const maxTools = 1024

func toolsFields() object {
	return object{
		{Name: "tools", Takes: list{max: maxTools, of: tagged{tag: "type", cases: []variant{
			{values: []string{"function"}, fields: object{
				{Name: "function", Required: true, Takes: object{
					{Name: "name", Takes: identifier{}, Required: true},
					{Name: "description", Takes: text{}},
					{Name: "parameters", Takes: free{}, Note: parametersNote},
					{Name: "strict", Takes: boolean{}, Note: strictNote},
				}},
			}},
			{values: []string{"custom"}, refused: "only functions are called"},
		}}}, Note: "the model sees them as they are sent"},
		toolChoiceField("function"),
		parallelField(),
		{Name: "functions", Note: "use tools"},
		{Name: "function_call", Note: "use tool_choice"},
	}
}

// functionTool makes a tool of an API that has another form of it.
func functionTool(name string, description *string, parameters json.RawMessage, strict bool) openAITool {
	type function struct {
		Name        string          `json:"name"`
		Description *string         `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	}
	tool := struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}{"function", function{name, description, parameters}}
	return openAITool{raw: bytes.TrimSpace(encode(tool)), name: name, strict: strict}
}
