package page

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestConversation goes the whole way: first visit, question, streamed answer,
// stop, edit, retry, reload.
func TestConversation(t *testing.T) {
	p := newProxy(t, served.URL)
	b := open(t, p.url, "/")
	if got := b.text("#greeting h2"); !strings.Contains(got, "?") {
		t.Errorf("the first visit is greeted with %q", got)
	}

	// A question and its answer.
	if got, want := b.asked("What is the capital of France?"), "The capital of France is Paris."; got != want {
		t.Fatalf("the answer is %q, want %q", got, want)
	}
	if got := b.text(".measures"); !strings.Contains(got, "7 tokens") || !strings.Contains(got, "tokens/s") || !strings.Contains(got, "from the cache") {
		t.Errorf("the answer's measures are %q", got)
	}
	if got := b.text("#context"); !strings.Contains(got, "26 of 8,192 tokens") {
		t.Errorf("the context is %q, want 26 of 8,192 tokens", got)
	}
	if got := b.text("#conversations a"); got != "What is the capital of France?" {
		t.Errorf("the list has %q", got)
	}

	// An answer that is stopped keeps what had come.
	release := p.holds(t, someOf)
	b.ask("Count from 1 to 100.")
	b.wait(`[...document.querySelectorAll('.assistant .prose')].at(-1).textContent.includes('5, 6')`)
	if got := b.text("#stop"); js[bool](b, `document.querySelector('#stop').hidden`) {
		t.Errorf("no way to stop: %q", got)
	}
	b.press("Escape")
	b.answered()
	release()
	stopped := b.answer()
	if !strings.HasPrefix(stopped, "1, 2, 3, 4, 5, 6") || strings.Contains(stopped, "99, 100") {
		t.Errorf("the stopped answer is %q", stopped)
	}
	if got := b.text(".problem"); got != "You stopped the answer here." {
		t.Errorf("below the stopped answer: %q", got)
	}

	// The second message is edited: the first turn stays and comes from the cache.
	b.press("ArrowUp")
	b.wait(`document.activeElement.matches('.edit')`)
	js[bool](b, `(document.activeElement.select(), true)`)
	b.typing("What is the capital of Italy?")
	b.press("Enter")
	b.wait(`document.querySelector('.user .versions')?.textContent.includes('2 of 2')`)
	b.answered()
	if got, want := b.answer(), "The capital of Italy is Rome."; got != want {
		t.Errorf("after the edit the answer is %q, want %q", got, want)
	}
	if got := js[string](b, `[...document.querySelectorAll('.measures')].at(-1).textContent`); strings.Contains(got, "none from the cache") {
		t.Errorf("the edited message hits no prefix: %q", got)
	}
	if got := b.text(".user .versions"); got != "2 of 2" {
		t.Errorf("versions of the edited message: %q, want 2 of 2", got)
	}
	b.click(".user [aria-label='Earlier version']")
	if got := b.answer(); got != stopped {
		t.Errorf("the earlier version has the answer %q, want %q", got, stopped)
	}
	b.click(".user [aria-label='Later version']")

	// An answer is asked for again.
	js[bool](b, `([...document.querySelectorAll('[data-action=retry]')].at(-1).click(), true)`)
	b.wait(`document.querySelector('.assistant .versions')`)
	b.answered()
	if got := b.text(".assistant .versions"); got != "2 of 2" {
		t.Errorf("versions of the answer: %q, want 2 of 2", got)
	}

	// Nothing is lost over a reload, what is typed and not sent included.
	js[bool](b, `(document.querySelector('#composer-text').focus(), true)`)
	b.typing("half a thou")
	before := b.said()
	b.reload()
	if diff := cmp.Diff(before, b.said()); diff != "" {
		t.Errorf("after a reload the messages are others (-before +after):\n%s", diff)
	}
	if got := js[string](b, `document.querySelector('#composer-text').value`); got != "half a thou" {
		t.Errorf("after a reload the box has %q, want what was typed", got)
	}
}

// TestConversations has several of them, each with its own draft.
func TestConversations(t *testing.T) {
	b := open(t, served.URL, "/")
	b.asked("What is the capital of France?")
	b.typing("draft of the first")
	b.click("#new-chat")
	b.wait(`!document.querySelector('.message') && document.querySelector('#composer-text').value === ''`)
	b.asked("What is 347 + 586?")
	if got, want := b.text("#conversations a"), "What is 347 + 586?\nWhat is the capital of France?"; got != want {
		t.Errorf("the list is %q, want %q", got, want)
	}
	js[bool](b, `(document.querySelectorAll('#conversations a')[1].click(), true)`)
	b.wait(`document.querySelector('#composer-text').value === 'draft of the first' && document.querySelectorAll('.message').length === 2`)
	if got := b.answer(); got != "The capital of France is Paris." {
		t.Errorf("the first conversation has the answer %q", got)
	}

	// Going back and forth keeps to the addresses.
	js[bool](b, `(history.back(), true)`)
	b.wait(`document.querySelector('#chat-title').textContent === 'What is 347 + 586?'`)

	// A deleted one stays deleted.
	b.click("#conversations li.open button")
	b.wait(`document.querySelector('#confirm').open`)
	b.click("#confirm .danger")
	b.wait(`document.querySelectorAll('#conversations li').length === 1 && !document.querySelector('.message')`)
	b.reload()
	if got := b.text("#conversations a"); got != "What is the capital of France?" {
		t.Errorf("after a reload the list is %q", got)
	}
}

// TestTwoTabs has a tab follow what another does, and leave an answer alone that
// is being written there.
func TestTwoTabs(t *testing.T) {
	p := newProxy(t, served.URL)
	release := p.holds(t, someOf)
	b := open(t, p.url, "/")
	b.ask("Count from 1 to 100.")
	b.wait(`document.querySelector('.assistant .prose')?.textContent.includes('3, 4')`)
	other := b.another("/" + js[string](b, `location.hash`))
	if got := other.text(".problem"); got != "" {
		t.Errorf("the other tab says of an answer that is being written: %q", got)
	}
	release()
	b.answered()
	other.wait(`document.querySelector('.assistant .prose').textContent.endsWith('99, 100.')`)
	if got := b.answer(); !strings.HasSuffix(got, "99, 100.") {
		t.Errorf("the first tab has the answer %q", got)
	}
}
