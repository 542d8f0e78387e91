package page

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// media makes the browser say that its person prefers something.
func media(features ...string) chromedp.Action[chromedp.Void] {
	var p emulation.SetEmulatedMediaParams
	for i := 0; i+1 < len(features); i += 2 {
		p.Features = append(p.Features, &emulation.MediaFeature{Name: features[i], Value: features[i+1]})
	}
	return command(emulation.SetEmulatedMedia, p)
}

// everything is an answer with all that an answer can have.
func everything(s stream, _ *http.Request) {
	s.event(`{"choices":[{"index":0,"delta":{"reasoning_content":"Let me see."}}]}`)
	s.content("# Title\n\nSome `code`, [a link](https://example.org/).\n\n- a\n- b\n\n```go\nfunc main() {}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
	s.event(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}}]}`)
	s.end("tool_calls")
}

// TestAccessibility has axe find nothing in any view, in either colour scheme
// and on a narrow window.
func TestAccessibility(t *testing.T) {
	file := os.Getenv("CALLA_AXE")
	if file == "" {
		t.Skip("needs CALLA_AXE, the file axe.min.js of the npm package axe-core: run scripts/test")
	}
	axe, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := newProxy(t, served.URL)
	p.plays(streams(everything))
	p.set(func(p *proxy) {
		p.status = func(s map[string]any) {
			s["recent_errors"] = []any{map[string]any{"at": "2026-01-02T03:04:05Z", "code": "device_error", "message": "the device failed", "count": 2}}
		}
	})
	views := []struct {
		name string
		show func(b *tab)
	}{
		{"first visit", func(*tab) {}},
		{"conversation", func(b *tab) {
			b.ask("Show me everything.")
			b.answered()
			js[bool](b, `(document.querySelector('.thinking').open = true)`)
		}},
		{"edit", func(b *tab) { b.press("ArrowUp"); b.wait(`document.querySelector('.edit')`) }},
		{"fault", func(b *tab) {
			b.press("Escape")
			p.plays(fault(400, "context_length_exceeded", "too long"))
			js[bool](b, `(document.querySelector('[data-action=retry]').click(), true)`)
			b.wait(`document.querySelector('.fault')?.checkVisibility()`)
		}},
		{"settings", func(b *tab) { b.click("#settings-button"); b.wait(`document.querySelector('#settings').open`) }},
		{"question before a deletion", func(b *tab) {
			b.press("Escape")
			js[bool](b, `(document.querySelector('#conversations button').click(), true)`)
			b.wait(`document.querySelector('#confirm').open`)
		}},
		{"status", func(b *tab) {
			b.press("Escape")
			js[bool](b, `(location.hash = '#/status', true)`)
			b.wait(`document.querySelector('.errors li')`)
			js[bool](b, `(document.querySelectorAll('.entry').forEach((e) => { e.open = true; }), true)`)
		}},
	}
	for _, look := range []struct {
		scheme string
		width  int64
	}{{"light", 1280}, {"dark", 1280}, {"light", 380}} {
		t.Run(fmt.Sprintf("%s, %d wide", look.scheme, look.width), func(t *testing.T) {
			p.plays(streams(everything))
			b := open(t, p.url, "/")
			b.expect("400")
			b.run(media("prefers-color-scheme", look.scheme), sized(look.width, 860, 1))
			js[any](b, string(axe)+"; null")
			for _, v := range views {
				v.show(b)
				for _, violation := range js[[]string](b, `axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations.map((v) => v.id + ': ' + v.help + ': ' + v.nodes.map((n) => n.html.slice(0, 160) + ' ' + (n.any[0]?.message ?? '')).join(' | ')))`) {
					t.Errorf("%s: %s", v.name, violation)
				}
			}
		})
	}
}

// TestKeyboard does everything without a mouse.
func TestKeyboard(t *testing.T) {
	p := newProxy(t, served.URL)
	b := open(t, p.url, "/")
	if got := js[string](b, `document.activeElement.id`); got != "composer-text" {
		t.Errorf("the focus begins at %q, want the box", got)
	}
	b.typing("one")
	b.press("Enter", shift)
	b.typing("two")
	if got := js[string](b, `document.querySelector('#composer-text').value`); got != "one\ntwo" {
		t.Errorf("with a broken line the box has %q", got)
	}
	p.plays(says("Fine."))
	b.press("Enter")
	b.answered()
	if got := b.text(".said"); got != "one\ntwo" {
		t.Errorf("the message is %q", got)
	}

	// An edit is given up by Escape, and keeps its text until then.
	b.press("ArrowUp")
	b.wait(`document.activeElement.matches('.edit')`)
	b.typing(" and more")
	b.reload()
	b.wait(`document.querySelector('.edit')?.value.includes('and more')`)
	js[bool](b, `(document.querySelector('.edit').focus(), true)`)
	b.press("Escape")
	b.wait(`!document.querySelector('.edit')`)
	if got := js[string](b, `document.activeElement.textContent`); got != "Edit" {
		t.Errorf("after Escape the focus is at %q, want Edit", got)
	}

	// Every control is reached by Tab, in the order of the page, and shows it.
	js[bool](b, `(document.querySelector('#skip').focus(), true)`)
	stops := []string{"skip"}
	for range 30 {
		b.press("Tab")
		stop := js[string](b, `(() => { const e = document.activeElement; return e === document.body ? '' : (e.id || e.getAttribute('aria-label') || e.textContent.trim()); })()`)
		if stop == "" || stop == "skip" {
			break
		}
		stops = append(stops, stop)
		if outline := js[string](b, `getComputedStyle(document.activeElement).outlineStyle + getComputedStyle(document.activeElement.closest('.composer') ?? document.body).boxShadow`); outline == "nonenone" {
			t.Errorf("the focus at %q is not to be seen", stop)
		}
	}
	got := strings.Join(stops, ", ")
	for _, want := range []string{"skip, new-chat", "engine-link", "settings-button", "Edit", "Try again", "composer-text", "attach, think"} {
		if !strings.Contains(got, want) {
			t.Errorf("Tab goes through %s; want %s among it", got, want)
		}
	}
}

// TestInputMethod has Enter belong to the input method while it composes.
func TestInputMethod(t *testing.T) {
	p := newProxy(t, served.URL)
	p.plays(says("はい。"))
	b := open(t, p.url, "/")
	b.run(command(input.ImeSetComposition, input.ImeSetCompositionParams{Text: "にほん", SelectionStart: 3, SelectionEnd: 3}))
	// The method takes the key's text for itself.
	b.run(command(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: "rawKeyDown", Key: "Enter", Code: "Enter", WindowsVirtualKeyCode: 13}))
	if got := js[int](b, `document.querySelectorAll('.message').length`); got != 0 {
		t.Fatalf("Enter in a composition sent %q", b.text(".said"))
	}
	b.run(command(input.InsertText, input.InsertTextParams{Text: "日本"}))
	b.press("Process") // Safari's Enter after its end of the composition
	if got := js[int](b, `document.querySelectorAll('.message').length`); got != 0 {
		t.Fatalf("a key of the input method sent %q", b.text(".said"))
	}
	b.press("Enter")
	b.answered()
	if got := b.text(".said"); got != "日本" {
		t.Errorf("the message is %q, want 日本", got)
	}
}

// TestDirections has right-to-left text run so, beside text that does not.
func TestDirections(t *testing.T) {
	p := newProxy(t, served.URL)
	p.plays(says("مرحبا بالعالم\n\nHello again\n\n1. שלום\n2. עולם"))
	b := open(t, p.url, "/")
	b.typing("שלום")
	if got := js[string](b, `getComputedStyle(document.querySelector('#composer-text')).direction`); got != "rtl" {
		t.Errorf("the box runs %s, want rtl", got)
	}
	b.press("Enter")
	b.answered()
	for selector, want := range map[string]string{".said": "rtl", ".prose .block:nth-child(1) p": "rtl", ".prose .block:nth-child(2) p": "ltr", ".prose ol": "rtl", "#chat-title": "rtl"} {
		if got := js[string](b, `getComputedStyle(document.querySelector(`+quote(selector)+`)).direction`); got != want {
			t.Errorf("%s runs %s, want %s", selector, got, want)
		}
	}
}

// TestNarrow has the page fit a small window, with the list at hand.
func TestNarrow(t *testing.T) {
	p := newProxy(t, served.URL)
	p.plays(streams(everything))
	b := open(t, p.url, "/")
	b.run(sized(320, 640, 1))
	b.ask("A-message-of-one-very-long-word-" + strings.Repeat("long", 60))
	b.answered()
	if got := js[int](b, `document.documentElement.scrollWidth`); got > 320 {
		t.Errorf("the page is %d wide in a window of 320", got)
	}
	b.wait(`!document.querySelector('#new-chat').checkVisibility({ visibilityProperty: true })`)
	b.click("#menu-button")
	b.wait(`document.activeElement.id === 'new-chat'`)
	b.press("Escape")
	b.wait(`document.activeElement.id === 'menu-button' && document.activeElement.getAttribute('aria-expanded') === 'false'`)
	js[bool](b, `(location.hash = '#/status', true)`)
	b.wait(`document.querySelector('.numbers')`)
	if got := js[int](b, `document.documentElement.scrollWidth`); got > 320 {
		t.Errorf("the status is %d wide in a window of 320", got)
	}
}

// TestReducedMotion has nothing move where that was asked for.
func TestReducedMotion(t *testing.T) {
	p := newProxy(t, served.URL)
	release := make(chan bool)
	p.plays(streams(func(s stream, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
		s.content("Done.")
		s.end("stop")
	}))
	b := open(t, p.url, "/")
	b.run(media("prefers-reduced-motion", "reduce"))
	b.ask("Wait.")
	b.wait(`document.querySelector('.waiting')?.checkVisibility()`)
	if got := js[int](b, `document.getAnimations().length`); got != 0 {
		t.Errorf("%d animations run", got)
	}
	b.run(media("prefers-reduced-motion", "no-preference"))
	b.wait(`document.getAnimations().length > 0`) // or the test sees nothing at all
	close(release)
	b.answered()
}

// TestScreenReader has the page say what happens, and name what it has.
func TestScreenReader(t *testing.T) {
	b := open(t, served.URL, "/")
	b.asked("What is the capital of France?")
	b.wait(`document.querySelector('#announcer').textContent.includes('The capital of France is Paris.')`)
	for selector, want := range map[string]string{
		`[role=status]`: "status", `nav`: "Conversations", `.user`: "You", `.assistant`: "Calla",
	} {
		if got := js[string](b, `(({ ariaLabel, role }) => ariaLabel ?? role)(document.querySelector(`+quote(selector)+`))`); got != want {
			t.Errorf("%s is named %q, want %q", selector, got, want)
		}
	}
}

// TestNothingLost closes the page the moment after a key is pressed.
func TestNothingLost(t *testing.T) {
	b := open(t, served.URL, "/")
	b.typing("a thought of")
	b.leaving(`(() => { const box = document.querySelector('#composer-text'); box.value += ' my own'; box.dispatchEvent(new Event('input')); window.before = true; location.reload(); return true; })()`)
	b.wait(`!window.before && document.querySelector('#composer-text')?.value === 'a thought of my own'`)
	b.ready()

	// Where there is no room for writing at once, it is written a moment later.
	js[bool](b, `(() => {
		for (let size = 4e6; size >= 1; size /= 2) {
			try { for (let i = 0; ; i++) localStorage.setItem('junk' + size + '.' + i, 'x'.repeat(size)); } catch { /* full */ }
		}
		const box = document.querySelector('#composer-text');
		box.value = 'y'.repeat(1000);
		box.dispatchEvent(new Event('input'));
		return true;
	})()`)
	b.kept("new", `(draft) => draft.text.length === 1000`)
	b.reload()
	b.wait(`document.querySelector('#composer-text').value === 'y'.repeat(1000)`)
}
