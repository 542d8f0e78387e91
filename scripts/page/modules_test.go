package page

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// in evaluates a function of one of the page's modules, given as m.
func in[T any](b *tab, module, function string) T {
	b.t.Helper()
	return js[T](b, `import('/page/js/`+module+`').then((m) => (`+function+`)(m))`)
}

// TestEventReader has a stream read the same wherever its pieces break.
func TestEventReader(t *testing.T) {
	b := open(t, served.URL, "/")
	for _, tt := range []struct {
		name, stream string
		want         []string
	}{
		{"events", "data: {\"a\":1}\n\ndata: [DONE]\n\n", []string{`{"a":1}`, "[DONE]"}},
		{"comments", ": waiting\n\ndata: x\n\n: waiting\n\n", []string{"x"}},
		{"named events", "event: delta\ndata: x\nid: 1\n\n", []string{"x"}},
		{"data of several lines", "data: a\ndata: b\n\n", []string{"a\nb"}},
		{"no space after the colon", "data:x\n\n", []string{"x"}},
		{"two spaces after the colon", "data:  x\n\n", []string{" x"}},
		{"lines that end with two bytes", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}},
		{"an event that never ends", "data: a\n\ndata: b", []string{"a"}},
		{"nothing", "", []string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := in[[][]string](b, "sse.js", `({ EventReader }) => {
				const stream = `+quote(tt.stream)+`;
				return Array.from({ length: stream.length + 1 }, (_, cut) => {
					const reader = new EventReader();
					return [...reader.read(stream.slice(0, cut)), ...reader.read(stream.slice(cut))];
				});
			}`)
			for cut, events := range got {
				if diff := cmp.Diff(tt.want, events); diff != "" {
					t.Errorf("cut after %d (-want +got):\n%s", cut, diff)
				}
			}
		})
	}
}

// TestRequestMessages has a path of messages become what the API takes.
func TestRequestMessages(t *testing.T) {
	b := open(t, served.URL, "/")
	for _, tt := range []struct {
		name, path, system, want string
	}{
		{"one message", `[{role: 'user', text: 'Hi'}]`, "", `[{"role":"user","content":"Hi"}]`},
		{"a system prompt", `[{role: 'user', text: 'Hi'}]`, "Be brief.", `[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}]`},
		{"a system prompt of blanks", `[{role: 'user', text: 'Hi'}]`, " \n", `[{"role":"user","content":"Hi"}]`},
		{"an answer that never began", `[{role: 'user', text: 'a'}, {role: 'assistant', text: '', calls: []}, {role: 'user', text: 'b'}]`, "",
			`[{"role":"user","content":"a"},{"role":"user","content":"b"}]`},
		{"a thought", `[{role: 'assistant', text: 'b', reasoning: 'a', calls: []}]`, "", `[{"role":"assistant","content":"b","reasoning_content":"a"}]`},
		{"a call and its result", `[{role: 'assistant', text: '', calls: [{id: 'c', name: 'f', arguments: '{}'}]}, {role: 'tool', callId: 'c', text: '1'}]`, "",
			`[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"1"}]`},
		{"a file alone", `[{role: 'user', text: '', files: [{name: 'a.txt', text: 'x\n'}]}]`, "", "[{\"role\":\"user\",\"content\":\"File a.txt:\\n```\\nx\\n```\\n\"}]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := in[string](b, "tree.js", `({ apiMessages }) => JSON.stringify(apiMessages(`+tt.path+`, `+quote(tt.system)+`))`)
			if diff := cmp.Diff(decoded(t, tt.want), decoded(t, got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func decoded(t *testing.T, document string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(document), &v); err != nil {
		t.Fatalf("%s: %v", document, err)
	}
	return v
}

// TestVersions walks a tree of messages in which the first was edited and an
// answer was asked for again.
func TestVersions(t *testing.T) {
	b := open(t, served.URL, "/")
	const tree = `new Map([['a', null, 1], ['a1', 'a', 2], ['a2', 'a', 3], ['b', null, 4], ['b1', 'b', 5], ['c', 'a1', 6]]
		.map(([id, parent, created]) => [id, { id, parent, created, role: 'x' }]))`
	for _, tt := range []struct{ name, call, want string }{
		{"path", `pathTo(tree, 'c').map((m) => m.id)`, "a,a1,c"},
		{"path to nowhere", `pathTo(tree, null)`, ""},
		{"versions of the first", `siblingsOf(tree, tree.get('a')).map((m) => m.id)`, "a,b"},
		{"versions of an answer", `siblingsOf(tree, tree.get('a2')).map((m) => m.id)`, "a1,a2"},
		{"the newest below the first", `newestBelow(tree, 'a')`, "a2"},
		{"the newest below an answer", `newestBelow(tree, 'a1')`, "c"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := in[string](b, "tree.js", `({ pathTo, siblingsOf, newestBelow }) => { const tree = `+tree+`; return String(`+tt.call+`); }`)
			if got != tt.want {
				t.Errorf("%s = %s, want %s", tt.call, got, tt.want)
			}
		})
	}
}

// TestReadFiles has text told from what is none.
func TestReadFiles(t *testing.T) {
	b := open(t, served.URL, "/")
	for _, tt := range []struct{ name, bytes, want string }{
		{"UTF-8", `[0xc3, 0xa9]`, "é"},
		{"UTF-8 with a mark", `[0xef, 0xbb, 0xbf, 0x61]`, "a"},
		{"UTF-16, low byte first", `[0xff, 0xfe, 0xe9, 0x00]`, "é"},
		{"UTF-16, high byte first", `[0xfe, 0xff, 0x00, 0xe9]`, "é"},
		{"lines of another system", `[0x61, 0x0d, 0x0a, 0x62]`, "a\nb"},
		{"nothing", `[]`, ""},
		{"Latin-1", `[0x61, 0xe9]`, "refused"},
		{"a zero", `[0x61, 0x00]`, "refused"},
		{"more than goes", `4000001`, "refused"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := in[string](b, "files.js", `async ({ readFiles }) => {
				const { taken, refused } = await readFiles([new File([new Uint8Array(`+tt.bytes+`)], 'f')]);
				return refused.length ? 'refused' : taken[0].text;
			}`)
			if got != tt.want {
				t.Errorf("read %q, want %q", got, tt.want)
			}
		})
	}
}

// TestGrowingMarkdown has an answer that grows come to what it is at once, and
// keep the elements of what is finished.
func TestGrowingMarkdown(t *testing.T) {
	b := open(t, served.URL, "/")
	source := "# A\n\nText with **bold**\nand more.\n\n```go\nx := 1\n\ny := 2\n```\n\n1. one\n2. two\n\n   inner\n\n| a |\n|---|\n| 1 |\n\nA [link][ref].\n\n[ref]: https://example.org/\n"
	got := in[[]string](b, "markdown.js", `({ Prose }) => {
		const source = `+quote(source)+`;
		const [grown, whole] = [0, 0].map(() => document.createElement('div'));
		const prose = new Prose(grown);
		let first, kept;
		for (let n = 1; n <= source.length; n++) {
			prose.show(source.slice(0, n));
			if (n === 10) first = grown.firstChild;
			if (n === source.indexOf('[ref]:')) kept = grown.firstChild === first;
		}
		new Prose(whole).show(source);
		return [grown.innerHTML, whole.innerHTML, String(kept)];
	}`)
	if got[0] != got[1] {
		t.Errorf("grown it is\n%s\nat once\n%s", got[0], got[1])
	}
	if got[2] != "true" || !strings.Contains(got[0], `<a href="https://example.org/"`) {
		t.Errorf("the first block is the same element: %s; all is\n%s", got[2], got[0])
	}
}
