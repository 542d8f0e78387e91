package chat

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// What the template prints of a reply is what the model would have written:
// parsing it gives the reply again.
func TestParseGivesBackWhatRenderPrints(t *testing.T) {
	checked := 0
	for _, c := range readConversations(t) {
		messages, err := parseRequest(t, []byte(c.In)).messages()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			if m.Role != "assistant" || len(m.ToolCalls) == 0 {
				continue
			}
			for i := range m.ToolCalls {
				m.ToolCalls[i].Name += fmt.Sprintf(".%d", i) // each has its own types
			}
			p, err := Render([]Message{{Role: "user"}, m}, Options{})
			if err != nil {
				continue // a part that is refused
			}
			checked++
			// The prompt would end with <|im_start|>assistant\n<think>.
			written := p.Segments[p.QueryEnd+3 : len(p.Segments)-2]
			want, tools := expectReply(t, m)
			o := parsing{inThink: true, tools: tools}
			if got := show(o.parse(t, written, whole)); got != want {
				t.Errorf("whole\ngot  %s\nwant %s", got, want)
			}
			if got := show(o.parse(t, written, everyByte)); got != want {
				t.Errorf("byte by byte\ngot  %s\nwant %s", got, want)
			}
		}
	}
	if checked < 300 {
		t.Errorf("only %d replies checked", checked)
	}
}

// expectReply says what a message is once it has gone through the template,
// and declares its tools.
func expectReply(t *testing.T, m Message) (shown string, tools []json.RawMessage) {
	content, err := flatten([]Message{m}, 0)
	if err != nil {
		t.Fatal(err)
	}
	thought, content := splitThought(m.Reasoning, content)
	var want Reply
	want.reasoning.WriteString(strip(thought))
	want.content.WriteString(content)
	for _, call := range m.ToolCalls {
		arguments, tool := expectCall(t, call)
		want.calls = append(want.calls, ToolCall{call.Name, arguments})
		tools = append(tools, tool)
	}
	return show(&want), tools
}

func expectCall(t *testing.T, call ToolCall) (arguments, tool json.RawMessage) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(call.Arguments, &given); err != nil {
		t.Fatal(err)
	}
	list, err := parseArguments(string(call.Arguments))
	if err != nil {
		t.Fatal(err)
	}
	properties := map[string]any{}
	var members []string
	for _, a := range list {
		kind, text := "array", a.text
		if given[a.name][0] == '"' {
			kind = "string"
		}
		properties[a.name] = map[string]string{"type": kind}
		if kind == "string" || !json.Valid([]byte(text)) { // 1e400 is printed as Infinity
			text = string(appendQuoted(nil, text))
		}
		members = append(members, string(appendQuoted(nil, a.name))+": "+text)
	}
	tool, err = json.Marshal(map[string]any{"name": call.Name, "parameters": map[string]any{"properties": properties}})
	if err != nil {
		t.Fatal(err)
	}
	return json.RawMessage("{" + strings.Join(members, ", ") + "}"), tool
}

// Markup in any order, cut anywhere.
func TestParseDoesNotDependOnPieces(t *testing.T) {
	fragments := []string{"‹tool_call›", "‹/tool_call›", "‹think›", "‹/think›", "\n", "\n", " ", "a", "é\"", "<function=weather>", "</function>",
		"<parameter=city>", "<parameter=days>", "<parameter=note>", "</parameter>", "</parameter>", "\n</parameter>\n", "\n</function>\n", "<", "null", "12",
		"‹tool_call›\n<function=weather>\n<parameter=city>\n", "\n</parameter>\n</function>\n‹/tool_call›"}
	r := rand.New(rand.NewPCG(1, 2))
	finished := 0
	for range 6000 {
		var b strings.Builder
		for range r.IntN(24) {
			b.WriteString(fragments[r.IntN(len(fragments))])
		}
		o := parsing{tools: bothTools, inThink: r.IntN(4) == 0, cut: r.IntN(2) == 0}
		pieces := piecesOf(b.String())
		reply := o.parse(t, pieces, whole)
		finished += len(reply.Calls())
		if got, want := show(o.parse(t, pieces, everyByte)), show(reply); got != want {
			t.Fatalf("%q byte by byte\ngot  %s\nwant %s", b.String(), got, want)
		}
		for _, c := range reply.Calls() {
			if !json.Valid(c.Arguments) {
				t.Fatalf("%q gives arguments %s", b.String(), c.Arguments)
			}
		}
	}
	if finished < 300 {
		t.Errorf("only %d calls among all outputs", finished)
	}
}

// However an output is cut, the events are the same, in an order a client can
// follow, and finished calls have JSON objects for arguments.
func FuzzParser(f *testing.F) {
	for _, output := range []string{
		"I see.\n‹/think›\n\nHello",
		"A\n‹tool_call›\n<function=weather>\n<parameter=city>\nPa\"ris\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n‹/tool_call›\nB",
		"‹tool_call›\n<function=weather>\n<parameter=city>\nParis\n<parameter=days>\n3\n</function>\n‹/tool_call›\n‹tool_call›\n<function=clock>\n</function>\n‹/tool_call›",
		"‹tool_call›\n<function=weather>\n<parameter=city>\n‹tool_call›\n</parameter>\n</function>\n‹/tool_call›\n</parameter>\n‹/tool_call›\n‹/tool_call›x",
		"‹tool_call›\n<function=weather>\n<parameter=note>\nnull\n</parameter>\n</parameter>\n<parameter=opts>\n{\"a\": True}\n</parameter></function>‹/tool_call›",
	} {
		for options := range uint8(8) {
			f.Add(output, options)
		}
	}
	f.Fuzz(func(t *testing.T, output string, options uint8) {
		o := parsing{inThink: options&1 != 0, cut: options&2 != 0}
		if options&4 == 0 {
			o.tools = bothTools
		}
		pieces := piecesOf(output)
		reply := o.parse(t, pieces, whole)
		if got, want := show(o.parse(t, pieces, everyByte)), show(reply); got != want {
			t.Errorf("byte by byte\ngot  %s\nwant %s", got, want)
		}
		for _, c := range reply.Calls() {
			var arguments map[string]any
			if err := json.Unmarshal(c.Arguments, &arguments); err != nil {
				t.Errorf("arguments %s: %v", c.Arguments, err)
			}
			if n := strings.Count(output, parameterStart); len(arguments) > n {
				t.Errorf("%d arguments from %d parameters", len(arguments), n)
			}
		}
		if o.tools == nil && !strings.Contains(output, "think") && reply.Reasoning()+reply.Content() != joined(pieces) && !o.inThink {
			t.Errorf("%q became %s", joined(pieces), show(reply))
		}
	})
}
