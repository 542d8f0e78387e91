package server

import (
	"encoding/json"
	"errors"
	"fmt"

	"calla/core/completion"
	"calla/core/grammar"
	"calla/core/schema"
)

const (
	heldNote       = "the answer is JSON that fits, after the thought if there is one"
	schemaNote     = "a JSON Schema; a keyword that is not held to is a 400 that names it"
	strictNote     = "true holds the arguments to the schema; a keyword that is not held to is a 400 that names it"
	parallelNote   = "false allows one call at most"
	choiceNote     = "none keeps the tools from the model; required, or a tool's name, makes the answer a call whose arguments fit"
	parametersNote = "a JSON Schema, shown to the model; its types say how arguments are read"
)

// formatField is what holds an answer to a schema. within is the name of the
// object with the schema; where it is empty the schema stands beside the type.
func formatField(name, within string) Field {
	fields := object{
		{Name: "name", Takes: identifier{}, Required: true},
		{Name: "description", Takes: text{}, Note: "taken; the model does not see it"},
		{Name: "schema", Takes: free{}, Required: true, Note: schemaNote},
		{Name: "strict", Takes: boolean{}, Note: "the answer is held to the schema in any case"},
	}
	if within != "" {
		fields = object{{Name: within, Required: true, Takes: fields}}
	}
	return Field{Name: name, Takes: tagged{tag: "type", cases: []variant{
		{values: []string{"text"}},
		{values: []string{"json_object"}, note: "any JSON object; the model is not told of it"},
		{values: []string{"json_schema"}, fields: fields, note: heldNote},
	}}, Note: "json_object and json_schema: " + heldNote}
}

// answerFormat is what an answer is to be, in the two forms that OpenAI's APIs
// have of it.
type answerFormat struct {
	raw    json.RawMessage
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
	Within struct {
		Schema json.RawMessage `json:"schema"`
	} `json:"json_schema"`
}

func (f *answerFormat) UnmarshalJSON(raw []byte) error {
	type plain answerFormat
	err := json.Unmarshal(raw, (*plain)(f))
	f.raw = append(f.raw, raw...)
	return err
}

// MarshalJSON shows the format as it was sent.
func (f answerFormat) MarshalJSON() ([]byte, error) {
	if f.raw == nil {
		return []byte(`{"type":"text"}`), nil
	}
	return f.raw, nil
}

// schema returns the schema that the answer must fit, or nil.
func (f *answerFormat) schema() json.RawMessage {
	switch {
	case f.Type == "json_object":
		return schema.AnyObject
	case f.Type != "json_schema":
		return nil
	case f.Schema != nil:
		return f.Schema
	}
	return f.Within.Schema
}

// toolChoiceField is OpenAI's tool_choice. within is the name of the object with
// the tool's name; where it is empty the name stands beside the type.
func toolChoiceField(within string) Field {
	named := object{{Name: "name", Takes: identifier{}, Required: true}}
	if within != "" {
		named = object{{Name: within, Required: true, Takes: named}}
	}
	return Field{Name: "tool_choice", Takes: either{oneOf{"auto", "none", "required"}, tagged{tag: "type", cases: []variant{
		{values: []string{"function"}, fields: named, note: "the answer is one call of this tool"},
		{values: []string{"allowed_tools"}, refused: "send the tools that are allowed"},
		{values: []string{"custom"}, refused: "only functions are called"},
	}}}, Note: choiceNote}
}

// toolChoice says which tools may or must be called, in the forms of all APIs.
type toolChoice struct {
	raw  json.RawMessage
	mode string // auto, none, required
	name string // of the tool that must be called
	// single is Anthropic's way to allow one call at most.
	single bool
}

func (c *toolChoice) UnmarshalJSON(raw []byte) error {
	c.raw = append(c.raw, raw...)
	if raw[0] == '"' {
		return json.Unmarshal(raw, &c.mode)
	}
	var o struct {
		Type     string `json:"type"`
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
		Single bool `json:"disable_parallel_tool_use"`
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return err
	}
	c.mode, c.name, c.single = o.Type, o.Name+o.Function.Name, o.Single
	switch o.Type {
	case "function", "tool", "any":
		c.mode = "required"
	}
	return nil
}

// MarshalJSON shows the choice as it was sent.
func (c toolChoice) MarshalJSON() ([]byte, error) {
	if c.raw == nil {
		return []byte(`"auto"`), nil
	}
	return c.raw, nil
}

// parallelCalls says whether the model may call several tools at once; nil is
// yes.
type parallelCalls struct {
	Parallel *bool `json:"parallel_tool_calls"`
}

func (p parallelCalls) single() bool { return p.Parallel != nil && !*p.Parallel }

func parallelField() Field {
	return Field{Name: "parallel_tool_calls", Takes: boolean{}, Note: parallelNote}
}

// toolSet is the tools of a request and what is said of calls.
type toolSet struct {
	tools  []openAITool
	choice toolChoice
	single bool
	// The API's names of the fields with a tool's name and with the choice.
	nameField, choiceField string
}

// into puts the tools into a request, unless they are kept from the model.
func (c toolSet) into(r *completion.Request) *apiError {
	known := make(map[string]bool, len(c.tools))
	for i, t := range c.tools {
		if known[t.name] {
			at := fmt.Sprintf(c.nameField, i)
			return badField(codeValue, at, "%s is another tool's too", at)
		}
		known[t.name] = true
	}
	if c.choice.mode == "none" {
		return nil
	}
	if c.choice.mode == "required" {
		switch {
		case len(c.tools) == 0:
			return badField(codeValue, c.choiceField, "%s asks for a call, and there are no tools", c.choiceField)
		case c.choice.name != "" && !known[c.choice.name]:
			return badField(codeValue, c.choiceField, "%s names no tool of the request", c.choiceField)
		}
		r.MustCall, r.Callee = true, c.choice.name
	}
	r.SingleCall = c.single || c.choice.single
	for i, t := range c.tools {
		r.Tools = append(r.Tools, t.raw)
		if t.strict && r.Strict == nil {
			r.Strict = make([]bool, len(c.tools))
		}
		if t.strict {
			r.Strict[i] = true
		}
	}
	return nil
}

// schemaPlaces are an API's names of the fields with schemas; that of tools has
// a %d in it.
type schemaPlaces struct{ answer, tool string }

// fault says in the API's words what is wrong with a schema, or returns nil
// where err is not of one.
func (p schemaPlaces) fault(err error) *apiError {
	if errors.Is(err, grammar.ErrAmbiguous) {
		return badField("ambiguous_schema", p.answer, "the schema can be read in too many ways at once: let alternatives differ where they begin")
	}
	var fault *schema.Error
	if !errors.As(err, &fault) {
		return nil
	}
	at := p.answer
	if fault.Tool >= 0 {
		at = fmt.Sprintf(p.tool, fault.Tool)
	}
	if fault.At != "" {
		at += "." + fault.At
	}
	return badField(codeUnsupValue, at, "%s: %s", at, fault.Fault)
}
