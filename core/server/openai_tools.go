package server

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// openAITool is a tool of OpenAI's chat completions; raw is the whole of it, as
// the model's template prints it.
type openAITool struct {
	raw  json.RawMessage
	name string
}

func (t *openAITool) UnmarshalJSON(raw []byte) error {
	var tool struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	err := json.Unmarshal(raw, &tool)
	t.raw, t.name = append(t.raw, raw...), tool.Function.Name
	return err
}

// maxTools bounds the tools of one request.
const maxTools = 1024

const strictNote = "answers are not held to a schema yet"

func toolsFields() object {
	return object{
		{Name: "tools", Takes: list{max: maxTools, of: tagged{tag: "type", cases: []variant{
			{values: []string{"function"}, fields: object{
				{Name: "function", Required: true, Takes: object{
					{Name: "name", Takes: identifier{}, Required: true},
					{Name: "description", Takes: text{}},
					{Name: "parameters", Takes: free{}, Note: "a JSON Schema, shown to the model; its types say how arguments are read"},
					{Name: "strict", Takes: only{"false"}, Note: strictNote},
				}},
			}},
			{values: []string{"custom"}, refused: "only functions are called"},
		}}}, Note: "the model sees them as they are sent"},
		{Name: "tool_choice", Takes: oneOf{"auto", "none"}, Note: "none keeps the tools from the model; required and names are not supported yet"},
		{Name: "parallel_tool_calls", Takes: only{"true"}, Note: "the model may call several tools at once"},
		{Name: "functions", Note: "use tools"},
		{Name: "function_call", Note: "use tool_choice"},
	}
}

// toolList returns the tools that the model is to see. nameField is the API's
// name of the field with a tool's name.
func toolList(tools []openAITool, choice, nameField string) ([]json.RawMessage, *apiError) {
	names := make(map[string]bool, len(tools))
	var list []json.RawMessage
	for i, t := range tools {
		if names[t.name] {
			at := fmt.Sprintf(nameField, i)
			return nil, badField(codeValue, at, "%s is another tool's too", at)
		}
		names[t.name] = true
		list = append(list, t.raw)
	}
	if choice == "none" {
		return nil, nil
	}
	return list, nil
}

// functionTool makes a tool of an API that has another form of it.
func functionTool(name string, description *string, parameters json.RawMessage) openAITool {
	type function struct {
		Name        string          `json:"name"`
		Description *string         `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	}
	tool := struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}{"function", function{name, description, parameters}}
	return openAITool{raw: bytes.TrimSpace(encode(tool)), name: name}
}
