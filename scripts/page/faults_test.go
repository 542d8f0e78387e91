package page

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"calla/scripts/process"
)

// TestFaults has every fault said in words with what to do, the message kept
// and the next try work.
func TestFaults(t *testing.T) {
	type handler = func(http.ResponseWriter, *http.Request)
	midway := func(end func(s stream)) handler {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			s := stream{w}
			s.content("Half an ")
			end(s)
		}
	}
	for _, tt := range []struct {
		name, want, remedy, kept string
		play                     handler
		browser                  []string // what the browser itself says of it
	}{
		{"no server", "Calla is not running", "Start it again", "", func(w http.ResponseWriter, _ *http.Request) { hangUp(w) }, []string{"ERR_EMPTY_RESPONSE"}},
		{"full queue", "Too many requests", "Try again in 5 seconds", "", fault(503, "queue_full", "the queue is full", "Retry-After", "5"), []string{"503"}},
		{"engine that stops", "The engine is stopping", "Wait until it has started again", "", fault(503, "stopped", "the engine is stopped"), []string{"503"}},
		{"device that hangs", "no longer answers", "Start it again", "", fault(503, "device_stuck", "the device does not answer"), []string{"503"}},
		{"conversation too long", "too long for the model. The server says: prompt is too long: 9,000", "Start a new conversation", "", fault(400, "context_length_exceeded", "prompt is too long: 9,000"), []string{"400"}},
		{"message too large", "too large", "Leave out a file", "", fault(413, "request_too_large", "the body is larger"), []string{"413"}},
		{"another model", "another model", "Try again", "", fault(404, "model_not_found", "no such model"), []string{"404"}},
		{"refused field", "refused the request: temperature is out of range", "Change what it names", "", fault(400, "invalid_value", "temperature is out of range"), []string{"400"}},
		{"fault of the server", "Something failed within the server", "log says where", "", fault(500, "internal_error", "the request failed"), []string{"500"}},
		{"another program", "What answered is not Calla", "taken the port", "", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<h1>no</h1>", 502) }, []string{"502"}},
		{"stream that breaks off", "The answer was cut off", "What had come is kept", "Half an ", midway(func(s stream) {
			// A browser drops what comes in the same moment as the end.
			time.Sleep(200 * time.Millisecond)
			hangUp(s.w)
		}), []string{"ERR_INCOMPLETE_CHUNKED_ENCODING"}},
		{"stream without an end", "The answer was cut off", "What had come is kept", "Half an ", midway(func(stream) {}), nil},
		{"fault in the stream", "The device failed", "Try again", "Half an ", midway(func(s stream) {
			s.event(`{"error":{"message":"the device failed","type":"server_error","param":null,"code":"device_error"}}`)
		}), nil},
		{"event that is no JSON", "not Calla", "Another program", "Half an ", midway(func(s stream) { s.event("{") }), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newProxy(t, served.URL)
			b := open(t, p.url, "/")
			b.expect(tt.browser...)
			p.plays(tt.play)
			b.ask("Is anyone there?")
			b.answered()
			if got := b.text(".problem"); !strings.Contains(got, tt.want) || !strings.Contains(got, tt.remedy) {
				t.Errorf("the page says %q, want %q and %q", got, tt.want, tt.remedy)
			}
			if got := b.answer(); got != strings.TrimSpace(tt.kept) {
				t.Errorf("of the answer is kept %q, want %q", got, tt.kept)
			}
			b.reload()
			if got := b.text(".problem"); !strings.Contains(got, tt.want) {
				t.Errorf("after a reload the page says %q, want %q", got, tt.want)
			}
			p.plays(says("Yes, I am."))
			b.click("[data-action=retry-fault]")
			b.wait(`document.querySelector('.assistant .prose')?.textContent === 'Yes, I am.'`)
			b.answered()
			if got := b.text(".said"); got != "Is anyone there?" {
				t.Errorf("the message is %q", got)
			}
			if got := b.text(".problem"); got != "" {
				t.Errorf("after a good answer the page says %q", got)
			}
		})
	}
}

// TestEngineKilled kills the process in the middle of an answer and starts
// another at the same port.
func TestEngineKilled(t *testing.T) {
	var log bytes.Buffer
	s, err := process.Start(&log, binary, "serve", "--model", "demo", "--port", "0")
	if err != nil {
		t.Fatal(err)
	}
	p := newProxy(t, s.URL)
	killed := false
	p.set(func(p *proxy) {
		p.onBytes = func(sent int) {
			if sent > 4000 && !killed {
				killed = true
				s.Kill()
			}
		}
	})
	b := open(t, p.url, "/")
	b.expect("ERR_")
	b.ask("Count from 1 to 100.")
	b.answered()
	if got := b.text(".problem"); !strings.Contains(got, "the engine ended while it wrote") {
		t.Errorf("the page says %q", got)
	}
	half := b.answer()
	if !strings.HasPrefix(half, "1, 2, 3") || strings.Contains(half, "100.") {
		t.Errorf("of the answer is kept %q", half)
	}
	b.wait(`document.querySelector('#engine-state').textContent === 'Not running'`)
	b.typing("typed meanwhile")

	s, err = process.Start(&log, binary, "serve", "--model", "demo", "--port", s.URL[strings.LastIndexByte(s.URL, ':')+1:])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Interrupt(); err != nil {
			t.Error(err)
		}
	})
	b.wait(`document.querySelector('#engine-state').textContent === 'Ready'`)
	b.click("[data-action=retry-fault]")
	b.wait(`document.querySelector('.assistant .prose').textContent.endsWith('99, 100.')`)
	b.click("[aria-label='Earlier version']")
	if got := b.answer(); got != half {
		t.Errorf("the half answer has become %q, want %q", got, half)
	}
	if got := js[string](b, `document.querySelector('#composer-text').value`); got != "typed meanwhile" {
		t.Errorf("the box has %q, want what was typed", got)
	}
}

// TestClosedAtTheEnd closes the page the moment an answer has ended, before it
// can be on the disk.
func TestClosedAtTheEnd(t *testing.T) {
	b := open(t, served.URL, "/")
	js[bool](b, `(() => {
		const stop = document.querySelector('#stop');
		window.before = true;
		let written = false;
		new MutationObserver(() => {
			if (stop.hidden && written) location.reload();
			written ||= !stop.hidden;
		}).observe(stop, { attributes: true });
		return true;
	})()`)
	b.ask("What is the capital of France?")
	b.wait(`!window.before && document.querySelector('.assistant')`)
	b.ready()
	if got := b.answer(); got != "The capital of France is Paris." || b.text(".problem") != "" {
		t.Errorf("after a reload the answer is %q; %s", got, b.text(".problem"))
	}
	if got := js[string](b, `Object.keys(localStorage).filter((k) => k.startsWith('calla.answer.')).join(' ')`); got != "" {
		t.Errorf("left in the browser's quick store: %s", got)
	}
}

// TestClosedMidway closes the page in the middle of an answer.
func TestClosedMidway(t *testing.T) {
	p := newProxy(t, served.URL)
	p.holds(t, someOf)
	b := open(t, p.url, "/")
	b.expect("ERR_")
	b.ask("Count from 1 to 100.")
	b.wait(`document.querySelector('.assistant .prose')?.textContent.includes('9, 10')`)
	b.reload()
	if got := b.text(".problem"); !strings.Contains(got, "closed while the answer was being written") {
		t.Errorf("after a reload the page says %q", got)
	}
	if got := b.answer(); !strings.HasPrefix(got, "1, 2, 3") {
		t.Errorf("after a reload the answer is %q, want what had come", got)
	}
}

// TestKey has a server with a key ask for it once.
func TestKey(t *testing.T) {
	const secret = "a-key-of-some-length"
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s, err := process.Start(&log, binary, "serve", "--model", "demo", "--port", "0", "--key-file", file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Interrupt(); err != nil {
			t.Error(err)
		}
	})
	b := openTab(t, chrome, s.URL, "", newStore)
	b.expect("401")
	b.run(navigate(b.url + "/"))
	b.wait(`document.querySelector('#key-dialog').open`)
	enter := func(key string) {
		t.Helper()
		b.wait(`document.activeElement.id === 'key-input'`)
		b.typing(key)
		b.press("Enter")
	}
	enter("not-the-key-but-long")
	b.wait(`document.querySelector('#key-dialog').textContent.includes('refused the key')`)
	enter(secret)
	b.wait(`document.querySelector('#engine-state').textContent === 'Ready'`)
	if got := b.asked("What is the capital of France?"); got != "The capital of France is Paris." {
		t.Errorf("the answer is %q", got)
	}
	b.reload()
	b.wait(`document.querySelector('#engine-state').textContent === 'Ready'`)
	if js[bool](b, `document.querySelector('#key-dialog').open`) {
		t.Error("after a reload the key is asked for again")
	}

	// Without the key the page still says what to do, and keeps the message. The
	// message goes at once: the page asks for the key as soon as it lacks it.
	b.typing("And of Italy?")
	js[bool](b, `(localStorage.removeItem('calla.key'), document.querySelector('#send').click(), true)`)
	b.wait(`document.querySelector('#key-dialog').open`)
	b.press("Escape")
	b.answered()
	if got := b.text(".problem"); !strings.Contains(got, "needs its API key") {
		t.Errorf("without the key the page says %q", got)
	}
	if got := js[string](b, `[...document.querySelectorAll('.said')].at(-1).textContent`); got != "And of Italy?" {
		t.Errorf("the message is %q", got)
	}
}
