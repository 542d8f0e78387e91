package chat

import (
	"fmt"
	"strings"
)

// toolsHead, toolsTail and what stands between them tell the model which tools
// it has and how to call them.
const (
	toolsHead = TurnStart + "system\n# Tools\n\nYou have access to the following functions:\n\n<tools>"
	toolsTail = "\n</tools>\n\n" +
		"If you choose to call a function ONLY reply in the following format with NO suffix:\n\n" +
		CallStart + "\n" +
		"<function=example_function_name>\n" +
		"<parameter=example_parameter_1>\nvalue_1\n</parameter>\n" +
		"<parameter=example_parameter_2>\n" +
		"This is the value for the second parameter\nthat can span\nmultiple lines\n</parameter>\n" +
		"</function>\n" +
		CallEnd + "\n\n" +
		"<IMPORTANT>\nReminder:\n" +
		"- Function calls MUST follow the specified format: an inner <function=...></function> block must be" +
		" nested within " + CallStart + CallEnd + " XML tags\n" +
		"- Required parameters MUST be specified\n" +
		"- You may provide optional reasoning for your function call in natural language BEFORE the function call," +
		" but NOT after\n" +
		"- If there is no function call available, answer the question like normal with your current knowledge" +
		" and do not tell the user about function calls\n" +
		"</IMPORTANT>"
)

// Render gives the prompt of a conversation. Errors are of type *Error; the
// reasons that the template knows are in its words.
func Render(messages []Message, o Options) (*Prompt, error) {
	if len(messages) == 0 {
		return nil, &Error{"messages", noMessages}
	}
	r := renderer{messages: messages, options: o, contents: make([]string, len(messages))}
	if err := r.system(); err != nil {
		return nil, err
	}
	if err := r.findQuery(); err != nil {
		return nil, err
	}
	for i := range messages {
		if err := r.message(i); err != nil {
			return nil, err
		}
		if i == r.query {
			r.prompt.QueryEnd = r.out.close()
		}
	}
	r.generation()
	r.out.close()
	r.prompt.Segments = r.out.list
	return &r.prompt, nil
}

type renderer struct {
	messages []Message
	options  Options
	contents []string // of each message, stripped; set when first looked at
	query    int      // the last user message that is no tool response
	out      segments
	prompt   Prompt
}

// system renders the block before the first turn: the tools and then the
// system message, either of which may be missing.
func (r *renderer) system() (err error) {
	lead := r.messages[0].Role == "system"
	if lead {
		if r.contents[0], err = flatten(r.messages, 0); err != nil {
			return err
		}
	}
	switch {
	case len(r.options.Tools) > 0:
		if err := r.tools(); err != nil {
			return err
		}
		if r.contents[0] != "" {
			r.out.text("\n\n" + r.contents[0])
		}
	case lead:
		r.out.markup(TurnStart + "system\n")
		r.out.text(r.contents[0])
	default:
		return nil
	}
	r.out.markup(TurnEnd + "\n")
	// A tool message that leads goes on in the text segment of this newline:
	// the block then has no end of its own.
	if r.messages[0].Role != "tool" {
		r.prompt.SystemEnd = r.out.close()
	}
	return nil
}

func (r *renderer) tools() error {
	r.out.markup(toolsHead)
	for i, tool := range r.options.Tools {
		printed, err := pythonJSON(string(tool))
		if err != nil {
			return &Error{fmt.Sprintf("tools[%d]", i), err.Error()}
		}
		r.out.text("\n")
		r.out.text(printed)
	}
	r.out.markup(toolsTail)
	return nil
}

// findQuery looks at user messages only, so that errors come in the
// template's order.
func (r *renderer) findQuery() (err error) {
	r.query = -1
	for i := range r.messages {
		if r.messages[i].Role != "user" {
			continue
		}
		if r.contents[i], err = flatten(r.messages, i); err != nil {
			return err
		}
		c := r.contents[i]
		if !strings.HasPrefix(c, ResponseStart) || !strings.HasSuffix(c, ResponseEnd) {
			r.query = i
		}
	}
	if r.query < 0 {
		return &Error{"messages", noQuery}
	}
	return nil
}

func (r *renderer) message(i int) (err error) {
	m := &r.messages[i]
	if r.contents[i] == "" { // empty, or not looked at before
		if r.contents[i], err = flatten(r.messages, i); err != nil {
			return err
		}
	}
	switch m.Role {
	case "system":
		if i > 0 {
			return &Error{fmt.Sprintf("messages[%d].role", i), lateSystem}
		}
	case "user":
		r.out.markup(TurnStart + "user\n")
		r.out.text(r.contents[i])
		r.out.markup(TurnEnd + "\n")
	case "assistant":
		return r.assistant(i)
	case "tool":
		r.tool(i)
	default:
		return &Error{fmt.Sprintf("messages[%d].role", i), unexpectedRole}
	}
	return nil
}

// assistant renders an earlier reply of the model. Thoughts are kept in the
// turn that goes on, which is the one after the last query.
func (r *renderer) assistant(i int) error {
	m := &r.messages[i]
	reasoning, content := splitThought(m.Reasoning, r.contents[i])
	r.out.markup(TurnStart + "assistant\n")
	if i > r.query || r.options.PreserveThinking {
		r.out.markup(ThinkStart + "\n")
		r.out.text(strip(reasoning))
		r.out.markup("\n" + ThinkEnd + "\n\n")
	}
	r.out.text(content)
	for j, call := range m.ToolCalls {
		switch {
		case j > 0:
			r.out.text("\n")
		case content != "":
			r.out.text("\n\n")
		}
		if err := r.call(call); err != nil {
			return &Error{fmt.Sprintf("messages[%d].tool_calls[%d].function.arguments", i, j), err.Error()}
		}
	}
	r.out.markup(TurnEnd + "\n")
	return nil
}

func (r *renderer) call(call ToolCall) error {
	arguments, err := parseArguments(string(call.Arguments))
	if err != nil {
		return err
	}
	r.out.markup(CallStart + "\n")
	r.out.text("<function=" + call.Name + ">\n")
	for _, a := range arguments {
		r.out.text("<parameter=" + a.name + ">\n" + a.text + "\n</parameter>\n")
	}
	r.out.text("</function>\n")
	r.out.markup(CallEnd)
	return nil
}

// tool renders a tool's answer. A run of answers is one turn of the user. The
// template does not open that turn where the conversation begins with it.
func (r *renderer) tool(i int) {
	if i > 0 && r.messages[i-1].Role != "tool" {
		r.out.markup(TurnStart + "user")
	}
	r.out.markup("\n" + ResponseStart + "\n")
	r.out.text(r.contents[i])
	r.out.markup("\n" + ResponseEnd)
	if i == len(r.messages)-1 || r.messages[i+1].Role != "tool" {
		r.out.markup(TurnEnd + "\n")
	}
}

func (r *renderer) generation() {
	if !r.options.AddGenerationPrompt {
		return
	}
	r.out.markup(TurnStart + "assistant\n" + ThinkStart + "\n")
	if r.options.Thinking {
		r.prompt.InThink = true
		return
	}
	r.out.markup("\n" + ThinkEnd + "\n\n")
}

// splitThought takes the thought out of a reply whose client sends it back as
// part of the content.
func splitThought(reasoning *string, content string) (thought, rest string) {
	if reasoning != nil {
		return *reasoning, content
	}
	before, _, found := strings.Cut(content, ThinkEnd)
	if !found {
		return "", content
	}
	before = strings.TrimRight(before, "\n")
	if at := strings.LastIndex(before, ThinkStart); at >= 0 {
		before = before[at+len(ThinkStart):]
	}
	after := content[strings.LastIndex(content, ThinkEnd)+len(ThinkEnd):]
	return strings.TrimLeft(before, "\n"), strings.TrimLeft(after, "\n")
}
