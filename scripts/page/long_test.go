package page

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// seed puts a conversation of n messages into the browser's store.
func (b *tab) seed(n int) {
	b.t.Helper()
	js[bool](b, fmt.Sprintf(`new Promise((done, fail) => {
		const open = indexedDB.open('calla', 1);
		open.onerror = () => fail(open.error);
		open.onsuccess = () => {
			const work = open.result.transaction(['conversations', 'messages'], 'readwrite');
			const [conversations, messages] = ['conversations', 'messages'].map((s) => work.objectStore(s));
			for (let i = 0; i < %d; i++) {
				const user = i %% 2 === 0;
				messages.put({
					id: 'm' + i, conversation: 'long', parent: i ? 'm' + (i - 1) : null, role: user ? 'user' : 'assistant', created: i, state: 'done',
					text: user ? 'Question ' + i : 'Answer ' + i + '\n\n- with a list\n- and **more**\n\n`+"```js\\nlet x = ' + i + ';\\n```"+`\n\nAnd a paragraph of some length that goes on for a while. '.repeat(3),
					reasoning: '', calls: [], files: [],
				});
			}
			conversations.put({ id: 'long', title: 'Long', created: 0, updated: 0, head: 'm' + (%d - 1), settings: {} });
			work.oncomplete = () => { open.result.close(); done(true); };
		};
	})`, n, n))
}

// TestLongConversation counts the frames of an answer below 200 messages, and
// holds them against those of one below two.
func TestLongConversation(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of watching")
	}
	const words = 150
	frames := func(messages int) (frames, touched int) {
		p := newProxy(t, served.URL)
		p.plays(streams(func(s stream, _ *http.Request) {
			for i := range words {
				s.content(fmt.Sprintf("word%d ", i))
				time.Sleep(10 * time.Millisecond)
			}
			s.end("stop")
		}))
		b := open(t, p.url, "/")
		b.seed(messages)
		b.run(navigate("about:blank")) // the page reads its store when it begins
		b.visit("/#/c/long")
		b.wait(fmt.Sprintf(`document.querySelectorAll('.message').length === %d`, messages))
		// What changes, and how often it is drawn, while the answer is written
		// and the person scrolls.
		js[bool](b, `(() => {
			window.frames = 0;
			window.touched = new Set();
			new MutationObserver((all) => all.forEach(({ target }) => {
				const message = target.parentElement?.closest('.message') ?? target.closest?.('.message');
				if (message) touched.add(message.dataset.id);
			})).observe(document.querySelector('#messages'), { subtree: true, childList: true, characterData: true });
			const scroller = document.querySelector('#scroller');
			const frame = () => { window.frames++; scroller.scrollTop += window.frames % 40 < 20 ? -30 : 30; requestAnimationFrame(frame); };
			requestAnimationFrame(frame);
			return true;
		})()`)
		b.ask("Go on.")
		b.wait(fmt.Sprintf(`document.querySelectorAll('.message').length === %d`, messages+2))
		js[bool](b, `(window.frames = 0, window.touched.clear(), true)`)
		b.wait(`document.querySelector('[aria-busy=true]') === null`)
		return js[int](b, `window.frames`), js[int](b, `window.touched.size`)
	}
	// A machine that is busy with other things may be so in one of the two.
	var few, many, touched int
	for range 3 {
		few, _ = frames(2)
		many, touched = frames(200)
		t.Logf("%d frames below 2 messages, %d below 200", few, many)
		if many*2 >= few {
			break
		}
	}
	if many*2 < few {
		t.Errorf("%d frames below 200 messages, %d below 2: want at least half as many", many, few)
	}
	// The answer alone is drawn, and the message before it once more at its end.
	if touched > 2 {
		t.Errorf("an answer changes %d messages, want none but itself and its question", touched)
	}
}
