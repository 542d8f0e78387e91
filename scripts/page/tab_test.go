package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"calla/scripts/process"
)

// tab is one tab of a browser with a store of its own.
type tab struct {
	t   *testing.T
	ctx context.Context
	url string // of the server's root

	mu       sync.Mutex
	troubles []string
	expected []string // parts of troubles that a test brings about
}

// open opens a tab at a path of a server. When the test ends, the tab must have
// had no fault of its own and asked no other server for anything.
func open(t *testing.T, url, path string) *tab {
	t.Helper()
	return openTab(t, chrome, url, path, newStore)
}

// another opens a second tab with the same store.
func (b *tab) another(path string) *tab {
	b.t.Helper()
	return openTab(b.t, b.ctx, b.url, path)
}

func openTab(t *testing.T, parent context.Context, url, path string, options ...chromedp.ContextOption) *tab {
	t.Helper()
	b := &tab{t: t, url: url}
	ctx, cancel := chromedp.NewContext(parent, append(options, chromedp.WithListener(b.listen))...)
	b.ctx = ctx
	t.Cleanup(func() {
		b.check()
		cancel()
	})
	// The first run makes the target, which lives as long as the run's context.
	if err := chromedp.Do(ctx, command(network.Enable, network.EnableParams{}), command(log.Enable, cdp.Empty{})); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	if path != "" {
		b.visit(path)
	}
	return b
}

// newStore gives a tab a store of its own.
var newStore = chromedp.WithNewBrowserContext()

// allowClipboard lets the page read the clipboard, which it never does itself.
func (b *tab) allowClipboard() {
	b.t.Helper()
	b.run(command(browser.SetPermission, browser.SetPermissionParams{
		Permission: &browser.PermissionDescriptor{Name: "clipboard-read"}, Setting: "granted",
		Origin: b.url, BrowserContextID: chromedp.FromContext(b.ctx).BrowserContextID,
	}))
}

func navigate(url string) chromedp.Action[chromedp.Void] { return chromedp.Navigate(url) }

// sized gives the page a window of a size, in points, with so many pixels each.
func sized(width, height int64, scale float64) chromedp.Action[chromedp.Void] {
	return command(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: scale})
}

// command is a command of the browser's protocol, as an action.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, c, params)
		return err
	})
}

func (b *tab) listen(event any) {
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		u, err := url.Parse(e.Request.URL)
		if err != nil || u.Scheme != "about" && u.Scheme != "blob" && "http://"+u.Host != b.url {
			b.trouble("asked for " + e.Request.URL)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			b.trouble(fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *runtime.EventExceptionThrown:
		b.trouble("exception: " + e.ExceptionDetails.Text + " " + describe(e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			b.trouble(fmt.Sprintf("console.%s: %s", e.Type, describe(e.Args[0])))
		}
	}
}

func describe(o *runtime.RemoteObject) string {
	if o == nil {
		return ""
	}
	return o.Description + string(o.Value)
}

func (b *tab) trouble(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.troubles = append(b.troubles, what)
}

// expect names parts of what the browser says of faults that a test brings
// about.
func (b *tab) expect(parts ...string) { b.expected = append(b.expected, parts...) }

func (b *tab) check() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, trouble := range b.troubles {
		known := false
		for _, part := range b.expected {
			known = known || strings.Contains(trouble, part)
		}
		if !known {
			b.t.Errorf("the browser says: %s", trouble)
		}
	}
}

// run runs browser actions, which must come to an end.
func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, process.Patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("browser: %v", err)
	}
}

func (b *tab) visit(path string) {
	b.t.Helper()
	b.run(chromedp.Navigate(b.url + path))
	b.ready()
}

func (b *tab) reload() {
	b.t.Helper()
	b.run(chromedp.Reload())
	b.ready()
}

// ready waits until the page has heard from the server and can be used.
func (b *tab) ready() {
	b.t.Helper()
	b.wait(`document.getElementById('engine-state')?.textContent !== 'Connecting…'`)
}

// js evaluates an expression, waiting for a promise, and returns its value.
func js[T any](b *tab, expression string) T {
	b.t.Helper()
	value, err := evaluate[T](b, expression)
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

func evaluate[T any](b *tab, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, process.Patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// left reports whether an expression had no answer because the page was being
// left, as it is on the way to the next.
func left(err error) bool {
	var fault *cdproto.Error
	return errors.As(err, &fault) && fault.Code == -32000
}

// wait waits until an expression is true, over a reload too, and says what the
// page looked like where it never is.
func (b *tab) wait(expression string) {
	b.t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		switch yes, err := evaluate[bool](b, `Boolean(`+expression+`)`); {
		case yes:
			return
		case err != nil && !left(err):
			b.t.Fatalf("%s: %v", expression, err)
		}
	}
	b.t.Fatalf("never: %s\nthe page has:\n%s", expression, js[string](b, `document.body.innerText`))
}

// leaving evaluates an expression by which the page is left, perhaps before it
// has an answer.
func (b *tab) leaving(expression string) {
	b.t.Helper()
	if _, err := evaluate[bool](b, expression); err != nil && !left(err) {
		b.t.Fatalf("%s: %v", expression, err)
	}
}

// kept waits until the draft of a conversation on the disk is as a function
// wants it, as it is a moment after it was typed.
func (b *tab) kept(id, want string) {
	b.t.Helper()
	in[bool](b, "store.js", `async ({ draftOf }) => {
		const draft = async () => await draftOf(`+quote(id)+`);
		for (let d = await draft(); !d || !(`+want+`)(d); d = await draft()) await new Promise((done) => setTimeout(done, 20));
		return true;
	}`)
}

// text returns the text of the elements that a selector matches, a line each.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return js[string](b, fmt.Sprintf(`[...document.querySelectorAll(%s)].filter((e) => e.checkVisibility()).map((e) => e.textContent).join('\n')`, quote(selector)))
}

func (b *tab) click(selector string) {
	b.t.Helper()
	b.run(chromedp.Click(chromedp.CSS(selector)))
}

// typing types text into what has the focus.
func (b *tab) typing(text string) {
	b.t.Helper()
	b.run(command(input.InsertText, input.InsertTextParams{Text: text}))
}

// keys are the keys that tests press, with their codes and what they write.
var keys = map[string]struct {
	code int64
	text string
}{
	"Enter": {13, "\r"}, "Escape": {27, ""}, "Tab": {9, ""}, "ArrowUp": {38, ""}, "ArrowDown": {40, ""}, " ": {32, " "},
	"Process": {229, ""}, // a key that an input method has taken
}

const shift = 8 // of the modifiers

// press presses a key the way a keyboard does: what it writes is written only
// where the page lets it.
func (b *tab) press(key string, modifiers ...int64) {
	b.t.Helper()
	k, ok := keys[key]
	if !ok {
		b.t.Fatalf("no key %q", key)
	}
	p := input.DispatchKeyEventParams{Type: "rawKeyDown", Key: key, Code: key, WindowsVirtualKeyCode: k.code, Text: k.text}
	if k.text != "" {
		p.Type = "keyDown"
	}
	for _, m := range modifiers {
		p.Modifiers |= m
	}
	up := p
	up.Type, up.Text = "keyUp", ""
	b.run(command(input.DispatchKeyEvent, p), command(input.DispatchKeyEvent, up))
}

// ask writes a message and sends it, without waiting for the answer.
func (b *tab) ask(question string) {
	b.t.Helper()
	b.run(chromedp.Focus(chromedp.CSS("#composer-text")))
	b.typing(question)
	b.press("Enter")
}

// asked asks and waits for the whole answer, which it returns.
func (b *tab) asked(question string) string {
	b.t.Helper()
	before := js[int](b, `document.querySelectorAll('.message').length`)
	b.ask(question)
	b.wait(fmt.Sprintf(`document.querySelectorAll('.message').length > %d`, before))
	b.answered()
	return b.answer()
}

// answered waits until nothing is being written.
func (b *tab) answered() {
	b.t.Helper()
	b.wait(`document.querySelectorAll('.assistant').length > 0 && !document.querySelector('[aria-busy=true]') && document.querySelector('#stop').hidden`)
}

// answer returns the text of the last answer.
func (b *tab) answer() string {
	b.t.Helper()
	return js[string](b, `[...document.querySelectorAll('.assistant .prose')].at(-1)?.textContent ?? ''`)
}

// said returns every message, as it is shown.
func (b *tab) said() []string {
	b.t.Helper()
	return js[[]string](b, `[...document.querySelectorAll('.message')].map((m) => m.querySelector('.prose, .said, .result').textContent)`)
}

func quote(s string) string {
	out, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(out)
}
