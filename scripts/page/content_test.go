package page

import (
	"net/http"
	"strings"
	"testing"
)

// hostile is an answer that tries to be more than text.
const hostile = `<script>window.pwned = 1</script>
<img src="http://evil.example/a.png" onerror="window.pwned = 2">
<iframe srcdoc="<script>parent.pwned = 3</script>"></iframe>

# <b onclick="pwned=4">Heading</b>

[a link](javascript:window.pwned=5) [another](data:text/html;base64,PHNjcmlwdD4=) [third](vbscript:x) [fourth](data:image/png;base64,AAAA) [fifth](slack://open) [sixth](/v1/status)
![picture](http://evil.example/p.png "onload=pwned") <svg/onload=window.pwned=6>
[good](https://example.org/?a=1&b=2 "<img src=x onerror=pwned=7>") <https://example.net/>

| a | <style>*{display:none}</style> |
| --- | --- |
| <a href="javascript:pwned=8">x</a> | ` + "`<u>code</u>`" + ` |

` + "```html\"onmouseover=pwned=9\n</code></pre><script>window.pwned = 10</script>\n```" + `

<details open ontoggle="window.pwned = 11"><form action="http://evil.example"><input autofocus onfocus="window.pwned = 12"></form></details>
&lt;script&gt;window.pwned = 13&lt;/script&gt; <!-- comment --> <![CDATA[x]]> <?php x ?>
`

// TestHostileAnswer has everything that a model may write stay text, in the
// answer, the thought, a tool call, and the conversation's name.
func TestHostileAnswer(t *testing.T) {
	p := newProxy(t, served.URL)
	p.plays(streams(func(s stream, _ *http.Request) {
		s.event(`{"choices":[{"index":0,"delta":{"reasoning_content":%s}}]}`, quote("<img src=x onerror=pwned=20>"))
		s.content(hostile)
		s.event(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":%s,"arguments":%s}}]}}]}`,
			quote("<b>f</b>"), quote(`{"x":"</pre><script>window.pwned = 21</script>"}`))
		s.end("tool_calls")
	}))
	b := open(t, p.url, "/")
	b.ask(`<img src="http://evil.example/q.png" onerror="window.pwned = 30">`)
	b.answered()
	js[bool](b, `(document.querySelectorAll('details').forEach((d) => { d.open = true; }), new Promise((done) => setTimeout(() => done(true), 300)))`)
	if got := js[bool](b, `'pwned' in window`); got {
		t.Errorf("the answer ran: %v", js[any](b, `window.pwned`))
	}
	allowed := "ARTICLE DIV DETAILS SUMMARY P H2 H3 BR A SPAN CODE PRE FIGURE FIGCAPTION BUTTON TABLE THEAD TBODY TR TH TD FOOTER FORM LABEL TEXTAREA"
	if got := js[string](b, `[...new Set([...document.querySelectorAll('.messages *')].map((e) => e.tagName))].filter((t) => !'`+allowed+`'.split(' ').includes(t)).join(' ')`); got != "" {
		t.Errorf("the answer made elements: %s", got)
	}
	if got := js[string](b, `[...document.querySelectorAll('.messages *')].flatMap((e) => e.getAttributeNames()).filter((n) => n.startsWith('on') || n === 'style' || n === 'src' || n === 'action').join(' ')`); got != "" {
		t.Errorf("the answer made attributes: %s", got)
	}
	// Addresses in the text are links, which ask for nothing until followed.
	links := js[string](b, `[...document.querySelectorAll('.prose a')].map((a) => a.href).join(' ')`)
	if want := "http://evil.example/a.png http://evil.example/p.png https://example.org/?a=1&b=2 https://example.net/ http://evil.example/"; links != want {
		t.Errorf("the answer links to %s, want %s", links, want)
	}
	if got := js[bool](b, `[...document.querySelectorAll('.prose a')].every((a) => a.rel.includes('noopener') && a.rel.includes('noreferrer'))`); !got {
		t.Error("a link would tell its target of this page")
	}
	for _, want := range []string{"<script>window.pwned = 1</script>", "<b onclick=\"pwned=4\">Heading</b>", "<svg/onload=window.pwned=6>", "<u>code</u>", "</code></pre><script>window.pwned = 10</script>", "<script>window.pwned = 13</script>", "<!-- comment -->"} {
		if got := js[string](b, `document.querySelector('.prose').textContent`); !strings.Contains(got, want) {
			t.Errorf("the answer's text lacks %q", want)
		}
	}
	// The policy holds by itself, should the page ever have a hole.
	if got := js[string](b, `(() => { try { document.createElement('div').innerHTML = '<b>x</b>'; return 'made'; } catch (e) { return e.name; } })()`); got != "TypeError" {
		t.Errorf("HTML out of text: %s, want a TypeError", got)
	}
	b.expect("TrustedHTML")
}

// TestMarkdown has the kinds of text that models write become what they mean.
func TestMarkdown(t *testing.T) {
	p := newProxy(t, served.URL)
	p.plays(says("# Title\n\nSome *emphasis*, **strong** and ~~struck~~ words with `code` &amp; an &eacute;.\n\n1. one\n2. two\n   - nested\n\n> quoted\n\n```go\nfunc main() {}\n```\n\n| a | b |\n|:--|--:|\n| 1 | 2 |\n\n---\n\nSee https://example.org/x.\n"))
	b := open(t, p.url, "/")
	b.asked("Show me everything.")
	for selector, want := range map[string]string{
		".prose h3": "Title", ".prose em": "emphasis", ".prose strong": "strong", ".prose s": "struck", ".prose p code": "code",
		".prose ol > li:first-child": "one", ".prose ol ul li": "nested", ".prose blockquote": "quoted", ".prose pre code": "func main() {}",
		".prose figcaption span": "go", ".prose thead th:first-child": "a", ".prose tbody td:last-child": "2", ".prose a": "https://example.org/x",
	} {
		if got := strings.TrimSpace(b.text(selector)); got != want {
			t.Errorf("%s has %q, want %q", selector, got, want)
		}
	}
	if got := b.text(".prose p"); !strings.Contains(got, "& an é.") {
		t.Errorf("the paragraphs are %q", got)
	}
	b.allowClipboard()
	b.click(".copy")
	b.wait(`document.querySelector('.copy').textContent === 'Copied'`)
	if got := js[string](b, `navigator.clipboard.readText()`); got != "func main() {}" {
		t.Errorf("copied is %q", got)
	}
}

const weatherTool = `[{"type": "function", "function": {"name": "get_weather", "description": "Get the weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}]`

// TestToolCall has the model call a tool and go on with what a person says that
// it came to.
func TestToolCall(t *testing.T) {
	p := newProxy(t, served.URL)
	b := open(t, p.url, "/")
	b.click("#settings-button")
	b.wait(`document.querySelector('#settings').open`)
	js[bool](b, `(document.querySelector('#settings .mono').focus(), true)`)
	b.typing("[{")
	if got := b.text("#settings .error"); !strings.Contains(got, "not JSON") {
		t.Errorf("of broken tools the page says %q", got)
	}
	js[bool](b, `(document.querySelector('#settings .mono').select(), true)`)
	b.typing(weatherTool)
	if got := b.text("#settings .error"); got != "" {
		t.Errorf("of good tools the page says %q", got)
	}
	b.press("Escape")
	b.ask("What is the weather in Paris?")
	b.answered()
	if got := b.text(".call-name"); !strings.Contains(got, "get_weather") {
		t.Fatalf("the call is %q", got)
	}
	if got := b.text(".call pre"); !strings.Contains(got, `"city": "Paris"`) {
		t.Errorf("the arguments are %q", got)
	}
	js[bool](b, `(document.querySelector('.results textarea').focus(), true)`)
	b.typing(`{"temperature": 21, "sky": "sunny"}`)
	b.reload()
	if got := js[string](b, `document.querySelector('.results textarea').value`); !strings.Contains(got, "sunny") {
		t.Errorf("after a reload the result is %q", got)
	}
	b.click(".results button")
	b.wait(`document.querySelectorAll('.assistant').length === 2`)
	b.answered()
	if got := b.answer(); got == "" || b.text(".problem") != "" {
		t.Errorf("the answer after the call is %q; %s", got, b.text(".problem"))
	}
	messages := p.request(t)["messages"].([]any)
	last := messages[len(messages)-1].(map[string]any)
	call := messages[len(messages)-2].(map[string]any)["tool_calls"].([]any)[0].(map[string]any)
	if last["role"] != "tool" || last["tool_call_id"] != call["id"] || !strings.Contains(last["content"].(string), "sunny") {
		t.Errorf("the request has the result %v for the call %v", last, call)
	}
}

// TestThinking has the thought folded and the words before the answer said.
func TestThinking(t *testing.T) {
	p := newProxy(t, served.URL)
	b := open(t, p.url, "/")
	b.click("#think")
	next := make(chan bool)
	p.plays(streams(func(s stream, r *http.Request) {
		step := func() {
			select {
			case <-next:
			case <-r.Context().Done():
			}
		}
		s.progress("queued", 2, 0)
		step()
		s.progress("loading", 30, 100)
		step()
		s.progress("prefill", 600, 1200)
		step()
		s.event(`{"choices":[{"index":0,"delta":{"reasoning_content":"Let me see."}}]}`)
		step()
		s.content("Done.")
		s.end("stop")
	}))
	b.ask("Think about it.")
	for _, want := range []string{"Waiting for 2 other requests", "Loading the model again 30 %", "Reading 50 %", "Thinking"} {
		b.wait(`document.querySelector('.waiting')?.textContent === ` + quote(want))
		next <- true
	}
	b.answered()
	if got := b.text(".thinking summary"); !strings.HasPrefix(got, "Thought for") {
		t.Errorf("the fold says %q", got)
	}
	if js[bool](b, `document.querySelector('.thinking').open`) || b.text(".thought") != "" {
		t.Error("the thought is not folded")
	}
	b.click(".thinking summary")
	if got := b.text(".thought"); got != "Let me see." {
		t.Errorf("the thought is %q", got)
	}
	if got := p.request(t)["reasoning_effort"]; got != "medium" {
		t.Errorf("the request has reasoning_effort %v, want medium", got)
	}
	if got := b.text(".measures"); !strings.Contains(got, "60 of 100 prompt tokens from the cache") {
		t.Errorf("the measures are %q", got)
	}
}

// TestSettings has every setting go into the request, and wrong ones not.
func TestSettings(t *testing.T) {
	p := newProxy(t, served.URL)
	p.plays(says("Yes."))
	b := open(t, p.url, "/")
	b.click("#settings-button")
	fill := func(label, value string) {
		t.Helper()
		js[bool](b, `([...document.querySelectorAll('#settings label')].find((l) => l.textContent === `+quote(label)+`).control.focus(), document.activeElement.select(), true)`)
		b.typing(value)
	}
	fill("System prompt", "Be brief.")
	fill("Temperature", "0.7")
	fill("Seed", "42")
	fill("Longest answer", "100")
	fill("Top p", "7")
	if got := b.text("#settings .error"); !strings.Contains(got, "from 0 to 1") {
		t.Errorf("of a wrong value the page says %q", got)
	}
	b.press("Escape")
	b.reload() // settings of a conversation that has not begun are kept as well
	b.asked("Hello?")
	got := p.request(t)
	first := got["messages"].([]any)[0].(map[string]any)
	if first["role"] != "system" || first["content"] != "Be brief." {
		t.Errorf("the first message is %v", first)
	}
	for name, want := range map[string]any{"temperature": 0.7, "seed": 42.0, "max_completion_tokens": 100.0, "model": "calla-tiny", "stream": true} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	for _, name := range []string{"top_p", "top_k", "reasoning_effort", "tools"} {
		if v, ok := got[name]; ok {
			t.Errorf("%s is %v, want none", name, v)
		}
	}
	if id := js[string](b, `location.hash.split('/')[2]`); got["prompt_cache_key"] != id {
		t.Errorf("prompt_cache_key is %v, want %s", got["prompt_cache_key"], id)
	}
}

// TestFiles has text files dropped in, and others refused.
func TestFiles(t *testing.T) {
	p := newProxy(t, served.URL)
	p.plays(says("I have read it."))
	b := open(t, p.url, "/")
	js[bool](b, `(() => {
		const data = new DataTransfer();
		data.items.add(new File(['first line\nwith `+"```"+` in it'], 'notes.md'));
		data.items.add(new File([new Uint8Array([0xff, 0x00, 0x80])], 'picture.png'));
		document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
		return true;
	})()`)
	b.wait(`document.querySelectorAll('#files li').length === 1`)
	if got := b.text(".notice p"); !strings.Contains(got, "picture.png: only files of plain text") {
		t.Errorf("of the picture the page says %q", got)
	}
	b.kept("new", `(draft) => draft.files.length === 1`)
	b.reload()
	b.wait(`document.querySelectorAll('#files li').length === 1`)
	b.asked("What is in it?")
	messages := p.request(t)["messages"].([]any)
	if got, want := messages[0].(map[string]any)["content"], "File notes.md:\n````\nfirst line\nwith ``` in it\n````\n\nWhat is in it?"; got != want {
		t.Errorf("the message is %q, want %q", got, want)
	}
	if got := b.text(".file summary"); !strings.HasPrefix(got, "notes.md") {
		t.Errorf("the message shows the file %q", got)
	}
	if got := b.text("#files li"); got != "" {
		t.Errorf("after sending, the box still has %q", got)
	}
}
