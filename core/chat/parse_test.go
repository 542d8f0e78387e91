package chat

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const weatherTool = `{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {
	"city": {"type": "string"}, "days": {"type": "integer"}, "metric": {"type": "boolean"}, "opts": {"type": "object"}, "note": {"type": ["string", "null"]}}}}}`

const clockTool = `{"type": "function", "function": {"name": "clock"}}`

// In the outputs of these tests a control token stands between ‹ and ›:
// ‹/think› is </think>.
var outputToken = regexp.MustCompile(`‹[^›]*›`)

// piecesOf splits an output into text and control tokens.
func piecesOf(output string) []Segment {
	var list []Segment
	for output != "" {
		at := outputToken.FindStringIndex(output)
		if at == nil {
			return append(list, Segment{Text: output})
		}
		if at[0] > 0 {
			list = append(list, Segment{Text: output[:at[0]]})
		}
		token := "<" + output[at[0]+len("‹"):at[1]-len("›")] + ">"
		list = append(list, Segment{Text: token, Control: true})
		output = output[at[1]:]
	}
	return list
}

type parsing struct {
	tools   []json.RawMessage
	inThink bool
	cut     bool // a limit ended the output
}

var bothTools = []json.RawMessage{json.RawMessage(weatherTool), json.RawMessage(clockTool)}

// parse feeds an output in pieces; split says how a text is cut.
func (o parsing) parse(t testing.TB, pieces []Segment, split func(string) []string) *Reply {
	t.Helper()
	p := NewParser(o.tools, o.inThink)
	var reply Reply
	var order streamOrder
	take := func(events []Event) {
		order.check(t, events)
		reply.Add(events...)
	}
	for _, piece := range pieces {
		if piece.Control {
			take(p.Control(piece.Text))
			continue
		}
		for _, s := range split(piece.Text) {
			take(p.Text(s))
		}
	}
	take(p.Close(o.cut))
	return &reply
}

// streamOrder checks that events come in an order that a client can follow.
type streamOrder struct {
	calls     int
	open, end bool
}

func (o *streamOrder) check(t testing.TB, events []Event) {
	t.Helper()
	for _, e := range events {
		fault := o.end
		switch e.Kind {
		case ReasoningDelta, ContentDelta:
			fault = fault || o.open || e.Text == ""
		case CallOpened:
			fault = fault || o.open || e.Call != o.calls || e.Name == ""
			o.open = true
		case ArgumentsDelta:
			fault = fault || !o.open || e.Call != o.calls || e.Text == ""
		case CallFinished:
			fault = fault || !o.open || e.Call != o.calls
			o.open = false
			o.calls++
		case CallTruncated:
			fault = fault || e.Call != o.calls
			o.end = true
		default:
			fault = true
		}
		if fault {
			t.Fatalf("event %+v out of place", e)
		}
	}
}

func whole(s string) []string { return []string{s} }

func everyByte(s string) []string {
	list := make([]string, len(s))
	for i := range len(s) {
		list[i] = s[i : i+1]
	}
	return list
}

// show writes a reply the way the tables want it.
func show(r *Reply) string {
	var b strings.Builder
	if r.Reasoning() != "" {
		fmt.Fprintf(&b, "reasoning %q; ", r.Reasoning())
	}
	if r.Content() != "" {
		fmt.Fprintf(&b, "content %q; ", r.Content())
	}
	for _, c := range r.Calls() {
		fmt.Fprintf(&b, "%s %s; ", c.Name, c.Arguments)
	}
	if r.Truncated() {
		b.WriteString("truncated; ")
	}
	return strings.TrimSuffix(b.String(), "; ")
}

// check parses an output whole, byte by byte, and cut in two at every
// byte.
func (o parsing) check(t *testing.T, output, want string) {
	t.Helper()
	pieces := piecesOf(output)
	if got := show(o.parse(t, pieces, whole)); got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
	if got := show(o.parse(t, pieces, everyByte)); got != want {
		t.Errorf("byte by byte\ngot  %s\nwant %s", got, want)
	}
	for i := range pieces {
		for at := range len(pieces[i].Text) {
			cut := append([]Segment{}, pieces[:i]...)
			if !pieces[i].Control {
				cut = append(cut, Segment{Text: pieces[i].Text[:at]}, Segment{Text: pieces[i].Text[at:]})
				cut = append(cut, pieces[i+1:]...)
				if got := show(o.parse(t, cut, whole)); got != want {
					t.Fatalf("cut at byte %d of piece %d\ngot  %s\nwant %s", at, i, got, want)
				}
			}
		}
	}
}

type parseCase struct {
	name, output, want string
}

func runParseCases(t *testing.T, o parsing, cases []parseCase) {
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) { o.check(t, tt.output, tt.want) })
	}
}

func TestParseThought(t *testing.T) {
	runParseCases(t, parsing{inThink: true}, []parseCase{
		{"thought and answer", "I see.\n‹/think›\n\nHello", `reasoning "I see."; content "Hello"`},
		{"white space inside is kept", " \na\n\n b \n‹/think›\n\n\n  c\n\nd", `reasoning "a\n\n b"; content "  c\n\nd"`},
		{"no thought", "\n\n‹/think›\n\nHello", `content "Hello"`},
		{"no newline anywhere", "a‹/think›b", `reasoning "a"; content "b"`},
		{"never ends", "I see \n", `reasoning "I see"`},
		{"nothing after it", "a\n‹/think›\n\n", `reasoning "a"`},
		{"nothing", "", ``},
		{"the end as ordinary text", "a </think> b‹/think›c", `reasoning "a </think> b"; content "c"`},
		{"opened again", "‹think›\na‹/think›b", `reasoning "a"; content "b"`},
		{"opening mentioned", "a ‹think› b‹/think›c", `reasoning "a <think> b"; content "c"`},
		{"second thought", "a‹/think›\n‹think›b‹/think›\nc", `reasoning "ab"; content "c"`},
		{"end mentioned in the answer", "a‹/think›b ‹/think› c", `reasoning "a"; content "b </think> c"`},
		{"trailing white space of the answer", "a‹/think›b\n\n", `reasoning "a"; content "b\n\n"`},
		{"call without tools", "a‹tool_call›b‹/think›‹tool_call›c", `reasoning "a<tool_call>b"; content "<tool_call>c"`},
	})
}

func TestParseAnswer(t *testing.T) {
	runParseCases(t, parsing{}, []parseCase{
		{"plain", "Hello\n\nthere ", `content "Hello\n\nthere "`},
		{"white space is the model's own", "\n\nHello", `content "\n\nHello"`},
		{"white space alone", " \n", `content " \n"`},
		{"thinks though it should not", "‹think›\na\n‹/think›\n\nb", `reasoning "a"; content "b"`},
		{"closes what is closed", "‹/think›\n\nb", `content "b"`},
		{"mentions", "use ‹think› and ‹/think›, <tool_call> and ‹tool_call›", `content "use <think> and </think>, <tool_call> and <tool_call>"`},
		{"call without tools", "‹tool_call›\n<function=clock>\n</function>\n‹/tool_call›",
			`content "<tool_call>\n<function=clock>\n</function>\n</tool_call>"`},
		{"unknown token", "a‹|box_start|›b", `content "a<|box_start|>b"`},
		{"characters of many bytes", "漢字 👩‍👩‍👧‍👦 é", `content "漢字 👩\u200d👩\u200d👧\u200d👦 é"`},
	})
}

func TestParseCalls(t *testing.T) {
	const paris = "‹tool_call›\n<function=weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n‹/tool_call›"
	const quotedParis = `<tool_call>\n<function=weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>`
	runParseCases(t, parsing{tools: bothTools}, []parseCase{
		{"one", paris, `weather {"city": "Paris"}`},
		{"no parameters", "‹tool_call›\n<function=clock>\n</function>\n‹/tool_call›", `clock {}`},
		{"every type", "‹tool_call›\n<function=weather>\n<parameter=city>\n12\n</parameter>\n<parameter=days>\n3\n</parameter>\n<parameter=metric>\nFalse\n</parameter>\n" +
			"<parameter=opts>\n{\"a\": [1.50, None,\n true]}\n</parameter>\n<parameter=note>\nnull\n</parameter>\n</function>\n‹/tool_call›",
			`weather {"city": "12", "days": 3, "metric": false, "opts": {"a": [1.50, null, true]}, "note": null}`},
		{"not of its type", "‹tool_call›\n<function=weather>\n<parameter=days>\nthree\n</parameter>\n<parameter=note>\n12\n</parameter>\n<parameter=opts>\n{'a': 1}\n</parameter>\n</function>\n‹/tool_call›",
			`weather {"days": "three", "note": "12", "opts": "{'a': 1}"}`},
		{"undeclared parameter", "‹tool_call›\n<function=weather>\n<parameter=x>\n3\n</parameter>\n</function>\n‹/tool_call›", `weather {"x": "3"}`},
		{"undeclared tool", "‹tool_call›\n<function=other>\n<parameter=x>\n3\n</parameter>\n</function>\n‹/tool_call›", `other {"x": "3"}`},
		{"two", paris + "\n" + paris, `weather {"city": "Paris"}; weather {"city": "Paris"}`},
		{"text before", "Let me look.\n\n" + paris, `content "Let me look."; weather {"city": "Paris"}`},
		{"text around", "Let me look.\n\n" + paris + "\nDone.\n", `content "Let me look.\nDone.\n"; weather {"city": "Paris"}`},
		{"white space after", "Let me look.\n" + paris + "\n \n", `content "Let me look."; weather {"city": "Paris"}`},
		{"text after", paris + "\n\nDone.", `content "Done."; weather {"city": "Paris"}`},
		{"white space around", " \n" + paris + "\n\n", `weather {"city": "Paris"}`},
		{"no white space", "‹tool_call›<function=weather><parameter=city>Paris</parameter><parameter=days>3</parameter></function>‹/tool_call›", `weather {"city": "Paris", "days": 3}`},
		{"much white space", "‹tool_call›\n\n <function=weather>\n\n<parameter=city>\nParis\n</parameter>\n\n\t<parameter=days>\n 3 \n</parameter>\n\n</function>\r\n‹/tool_call›",
			`weather {"city": "Paris", "days": 3}`},
		{"one newline is the format's", "‹tool_call›\n<function=weather>\n<parameter=city>\n\n\n Paris \n\n</parameter>\n</function>\n‹/tool_call›", `weather {"city": "\n\n Paris \n"}`},
		{"empty values", "‹tool_call›\n<function=weather>\n<parameter=city>\n\n</parameter>\n<parameter=note>\n</parameter>\n<parameter=days>\n\n</parameter>\n</function>\n‹/tool_call›",
			`weather {"city": "", "note": "", "days": ""}`},
		{"value that needs escapes", "‹tool_call›\n<function=weather>\n<parameter=city>\n\"a\"\\b\n\tc\x01 漢字 <b>&</b>\n</parameter>\n</function>\n‹/tool_call›",
			`weather {"city": "\"a\"\\b\n\tc\u0001 漢字 <b>&</b>"}`},
		{"key that needs escapes", "‹tool_call›\n<function=weather>\n<parameter=a\"b\\>\nx\n</parameter>\n</function>\n‹/tool_call›", `weather {"a\"b\\": "x"}`},
		{"end of a parameter in the value", "‹tool_call›\n<function=weather>\n<parameter=city>\na</parameter>b\n</parameter>\nc\n</parameter>\n</function>\n‹/tool_call›",
			`weather {"city": "a</parameter>b\n</parameter>\nc"}`},
		{"end of a function in the value", "‹tool_call›\n<function=weather>\n<parameter=city>\na\n</parameter>\n</function>\nb\n</parameter>\n</function>\n‹/tool_call›",
			`weather {"city": "a\n</parameter>\n</function>\nb"}`},
		{"parameter given twice is part of the value", "‹tool_call›\n<function=weather>\n<parameter=city>\na\n</parameter>\n<parameter=city>\nb\n</parameter>\n</function>\n‹/tool_call›",
			`weather {"city": "a\n</parameter>\n<parameter=city>\nb"}`},
		{"parameter without a name is part of the value", "‹tool_call›\n<function=weather>\n<parameter=city>\na\n</parameter>\n<parameter=>\nb\n</parameter>\n<parameter=x\nc\n</parameter>\n</function>\n‹/tool_call›",
			`weather {"city": "a\n</parameter>\n<parameter=>\nb\n</parameter>\n<parameter=x\nc"}`},
		{"control tokens in the value", "‹tool_call›\n<function=weather>\n<parameter=city>\n‹think›a‹/think› ‹/tool_call›\n‹/tool_call›\n</parameter>\n</function>\n‹/tool_call›",
			`weather {"city": "<think>a</think> </tool_call>\n</tool_call>"}`},
		{"call quoted in the value", "‹tool_call›\n<function=weather>\n<parameter=city>\nWrite " + paris + ", so.\n</parameter>\n</function>\n‹/tool_call›\nDone.",
			`content "Done."; weather {"city": "Write ` + quotedParis + `, so."}`},
		{"call without a parameter's end quoted in the value", "‹tool_call›\n<function=weather>\n<parameter=city>\n<function=demo>\n</function>\n‹/tool_call›\n</parameter>\n</function>\n‹/tool_call›",
			`weather {"city": "<function=demo>\n</function>\n</tool_call>"}`},
		{"two calls quoted in the value", "‹tool_call›\n<function=weather>\n<parameter=city>\n" + paris + "\n" + paris + ", so.\n</parameter>\n</function>\n‹/tool_call›\n" + paris,
			`weather {"city": "` + quotedParis + `\n` + quotedParis + `, so."}; weather {"city": "Paris"}`},
		{"call quoted within a quoted call", "‹tool_call›\n<function=weather>\n<parameter=city>\n‹tool_call›‹tool_call›a‹/tool_call›\n</parameter>\n</function>\n‹/tool_call›b\n</parameter>\n</function>\n‹/tool_call›",
			`weather {"city": "<tool_call><tool_call>a</tool_call>\n</parameter>\n</function>\n</tool_call>b"}`},
		{"value begins with a control token", "‹tool_call›\n<function=weather>\n<parameter=city>‹think›\n\n</parameter>\n</function>\n‹/tool_call›", `weather {"city": "<think>\n"}`},
		{"opening mentioned in the value", "‹tool_call›\n<function=weather>\n<parameter=city>\nThe ‹tool_call› token\n</parameter>\n</function>\n‹/tool_call›",
			`weather {"city": "The <tool_call> token"}`},
		{"typed markup in the value", "‹tool_call›\n<function=weather>\n<parameter=city>\n<tool_call></function></tool_call>\n</parameter>\n</function>\n‹/tool_call›",
			`weather {"city": "<tool_call></function></tool_call>"}`},
		{"parameter not closed", "‹tool_call›\n<function=weather>\n<parameter=city>\nParis\n<parameter=days>\n3\n</parameter>\n</function>\n‹/tool_call›", `weather {"city": "Paris", "days": 3}`},
		{"last parameter not closed", "‹tool_call›\n<function=weather>\n<parameter=city>\nParis\n</function>\n‹/tool_call›", `weather {"city": "Paris"}`},
		{"function not closed", "‹tool_call›\n<function=weather>\n<parameter=city>\nParis\n</parameter>\n‹/tool_call›\n", `weather {"city": "Paris"}`},
		{"neither, twice", "‹tool_call›\n<function=weather>\n<parameter=city>\nParis\n</function>\n‹/tool_call›\n‹tool_call›\n<function=weather>\n<parameter=city>\nOslo\n</parameter>\n‹/tool_call›",
			`weather {"city": "Paris"}; weather {"city": "Oslo"}`},
		{"parameter-like line in the value", "‹tool_call›\n<function=weather>\n<parameter=city>\na <parameter=days>\n<parameter=days> 3\n<parameter=other>\nb\n</parameter>\n</function>\n‹/tool_call›",
			`weather {"city": "a <parameter=days>\n<parameter=days> 3\n<parameter=other>\nb"}`},
		{"white space too long to be the format's", "‹tool_call›\n<function=weather>\n<parameter=city>\na\n</parameter>" + strings.Repeat("\n", 1100) + "</function>\n‹/tool_call›",
			`weather {"city": "a\n</parameter>` + strings.Repeat(`\n`, 1099) + `"}`},
		{"long name is no name", "‹tool_call›\n<function=weather>\n<parameter=city>\na\n</parameter>\n<parameter=" + strings.Repeat("x", 1100) + ">\n</parameter>\n</function>\n‹/tool_call›",
			`weather {"city": "a\n</parameter>\n<parameter=` + strings.Repeat("x", 1100) + `>"}`},
	})
}

func TestParseWhatIsNoCall(t *testing.T) {
	runParseCases(t, parsing{tools: bothTools}, []parseCase{
		{"ordinary text", "<tool_call>\n<function=clock>\n</function>\n</tool_call>", `content "<tool_call>\n<function=clock>\n</function>\n</tool_call>"`},
		{"mention", "Use ‹tool_call› to call.\n", `content "Use <tool_call> to call.\n"`},
		{"mention of both", "‹tool_call› and ‹/tool_call›", `content "<tool_call> and </tool_call>"`},
		{"mention at the end", "the token is ‹tool_call›", `content "the token is <tool_call>"`},
		{"other format", "‹tool_call›\n{\"name\": \"clock\"}\n‹/tool_call›", `content "<tool_call>\n{\"name\": \"clock\"}\n</tool_call>"`},
		{"no name", "a ‹tool_call›\n<function=>\n</function>\n‹/tool_call›", `content "a <tool_call>\n<function=>\n</function>\n</tool_call>"`},
		{"name over two lines", "‹tool_call›<function=clo\nck>", `content "<tool_call><function=clo\nck>"`},
		{"text after the function's name", "‹tool_call›\n<function=clock>\nnow</function>\n‹/tool_call›", `content "<tool_call>\n<function=clock>\nnow</function>\n</tool_call>"`},
		{"text after the function's end", "‹tool_call›\n<function=clock>\n</function>\nnow‹/tool_call›", `content "<tool_call>\n<function=clock>\n</function>\nnow</tool_call>"`},
		{"function not closed", "‹tool_call›\n<function=clock>\n‹/tool_call›", `content "<tool_call>\n<function=clock>\n</tool_call>"`},
		{"parameter's name not closed", "‹tool_call›\n<function=weather>\n<parameter=city\nParis", `content "<tool_call>\n<function=weather>\n<parameter=city\nParis"`},
		{"call after a mention", "‹tool_call› ‹tool_call›\n<function=clock>\n</function>\n‹/tool_call›", `content "<tool_call>"; clock {}`},
		{"model gave up", "‹tool_call›\n<function=weather>\n<param", `content "<tool_call>\n<function=weather>\n<param"`},
		{"long white space", "‹tool_call›" + strings.Repeat(" ", 1025) + "<function=clock></function>‹/tool_call›",
			`content "<tool_call>` + strings.Repeat(" ", 1025) + `<function=clock></function></tool_call>"`},
	})
}

func TestParseCallsInThought(t *testing.T) {
	runParseCases(t, parsing{tools: bothTools, inThink: true}, []parseCase{
		{"after the thought", "I look.\n‹/think›\n\n‹tool_call›\n<function=clock>\n</function>\n‹/tool_call›", `reasoning "I look."; clock {}`},
		{"thought not closed", "I look.\n‹tool_call›\n<function=clock>\n</function>\n‹/tool_call›\n", `reasoning "I look."; clock {}`},
		{"thought closed after it", "I look.\n‹tool_call›\n<function=clock>\n</function>\n‹/tool_call›\n‹/think›\n\nSo.", `reasoning "I look."; content "So."; clock {}`},
		{"mention", "I use ‹tool_call› now.\n‹/think›\n\nNo.", `reasoning "I use <tool_call> now."; content "No."`},
		{"mention of the format", "Like ‹tool_call›\n<function=example_function_name>\n<parameter=a>\nb\n</parameter>\n</function>\n‹/tool_call›?‹/think›No.",
			`reasoning "Like <tool_call>\n<function=example_function_name>\n<parameter=a>\nb\n</parameter>\n</function>\n</tool_call>?"; content "No."`},
		{"mention of a tool", "Like ‹tool_call›\n<function=clock>, or so.‹/think›No.", `reasoning "Like <tool_call>\n<function=clock>, or so."; content "No."`},
	})
}

func TestParseTruncated(t *testing.T) {
	o := parsing{tools: bothTools, cut: true}
	pieces := piecesOf("A\n‹tool_call›\n<function=weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n‹/tool_call›")
	for at := range len(pieces[2].Text) + 1 {
		cut := []Segment{pieces[0], pieces[1], text(pieces[2].Text[:at])}
		for _, split := range []func(string) []string{whole, everyByte} {
			if got, want := show(o.parse(t, cut, split)), `content "A"; truncated`; got != want {
				t.Errorf("after %q: %s, want %s", cut[2].Text, got, want)
			}
		}
	}
	if got, want := show(o.parse(t, pieces, whole)), `content "A"; weather {"city": "Paris", "days": 3}`; got != want {
		t.Errorf("all of it: %s, want %s", got, want)
	}
	runParseCases(t, parsing{tools: bothTools}, []parseCase{
		{"model gave up", "‹tool_call›\n<function=weather>\n<parameter=city>\nParis", `truncated`},
		{"second call", "‹tool_call›\n<function=clock>\n</function>\n‹/tool_call›‹tool_call›\n<function=weather>\n<parameter=city>\nParis\n‹/tool_call›", `clock {}; truncated`},
	})
	t.Run("end in doubt", func(t *testing.T) {
		o.check(t, "‹tool_call›\n<function=weather>\n<parameter=city>\nParis\n</function>\n‹/tool_call›", `truncated`)
	})
}

// Arguments go out while the model writes them.
func TestArgumentsStream(t *testing.T) {
	p := NewParser(bothTools, false)
	p.Control(CallStart)
	for _, step := range []struct {
		text string
		want []Event
	}{
		{"\n<function=weather>\n", nil},
		{"<parameter=city>\n", []Event{{Kind: CallOpened, Name: "weather"}, {Kind: ArgumentsDelta, Text: `{"city": "`}}},
		{"Pa", []Event{{Kind: ArgumentsDelta, Text: `Pa`}}},
		{"ri\"s\n", []Event{{Kind: ArgumentsDelta, Text: `ri\"s`}}},
		{"</param", nil},
		{"eter>\n<parameter=days>\n1", []Event{{Kind: ArgumentsDelta, Text: `", "days": `}}},
		{"2", nil},
		{"\n</parameter>\n</function>\n", nil},
	} {
		if diff := cmp.Diff(step.want, append([]Event(nil), p.Text(step.text)...)); diff != "" {
			t.Errorf("after %q (-want +got):\n%s", step.text, diff)
		}
	}
	want := []Event{{Kind: ArgumentsDelta, Text: `12}`}, {Kind: CallFinished}}
	if diff := cmp.Diff(want, p.Control(CallEnd)); diff != "" {
		t.Errorf("at the end (-want +got):\n%s", diff)
	}
}

func TestInThink(t *testing.T) {
	p := NewParser(bothTools, true)
	for _, step := range []struct {
		piece Segment
		want  bool
	}{
		{text("a"), true}, {control(CallStart), true}, {text("b"), true}, {control(ThinkEnd), false},
		{text("c"), false}, {control(ThinkStart), false}, {text("d"), false},
	} {
		if step.piece.Control {
			p.Control(step.piece.Text)
		} else {
			p.Text(step.piece.Text)
		}
		if p.InThink() != step.want {
			t.Errorf("after %q: in a thought %t, want %t", step.piece.Text, p.InThink(), step.want)
		}
	}
}
