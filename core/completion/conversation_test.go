package completion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"calla/core/backend"
	"calla/core/chat"
	"calla/core/engine"
)

// theatre is a service with a prefix cache, and for each request a cold one to
// compare with. The scripted device's logits tell any two states apart.
type theatre struct {
	*stage
	t *testing.T
}

func newTheatre(t *testing.T) *theatre {
	th := &theatre{t: t}
	th.stage = scriptWith(t, engine.Options{MaxSeq: 65536, PrefillChunk: 512, Queue: 8, CacheEntries: 2})
	return th
}

// want is what a request must find in the cache.
type want struct {
	cached int
	miss   *engine.CacheMiss
}

// asks evaluates a request's prompt and compares with a cold run. It does not
// tell the engine what comes next, so that only the prompt's own snapshots
// count.
func (th *theatre) asks(r Request, w want) engine.Result {
	th.t.Helper()
	th.reply.set(-1, nil)
	got, gotProbs := th.evaluate(th.stage, r)
	cold := scriptWith(th.t, engine.Options{MaxSeq: 65536, PrefillChunk: 2048, Queue: 8})
	_, wantProbs := th.evaluate(cold, r)
	if !slices.EqualFunc(gotProbs, wantProbs, sameLogProb) {
		th.t.Errorf("after a hit of %d tokens the logits differ from a cold run's", got.CachedTokens)
	}
	th.compare(got.CachedTokens, got.Miss, w)
	return got
}

func (th *theatre) compare(cached int, miss *engine.CacheMiss, w want) {
	th.t.Helper()
	if cached != w.cached {
		th.t.Errorf("%d tokens were cached, want %d", cached, w.cached)
	}
	if (miss == nil) != (w.miss == nil) || miss != nil && *miss != *w.miss {
		th.t.Errorf("miss %v, want %v", show(miss), show(w.miss))
	}
}

func show(m *engine.CacheMiss) string {
	if m == nil {
		return "none"
	}
	return fmt.Sprintf("%s at %d", m.Reason, m.Position)
}

func sameLogProb(a, b engine.LogProb) bool {
	return a.Token == b.Token && a.LogProb == b.LogProb && slices.EqualFunc(a.Top, b.Top, sameLogProb)
}

func (th *theatre) evaluate(s *stage, r Request) (engine.Result, []engine.LogProb) {
	th.t.Helper()
	p, err := s.prompt(r)
	if err != nil {
		th.t.Fatal(err)
	}
	g, err := s.engine.Submit(context.Background(), engine.Request{
		Prompt: p.tokens, Keep: p.keep, CacheKey: r.CacheKey, MaxTokens: 3, LogProbs: 5,
	})
	if err != nil {
		th.t.Fatal(err)
	}
	var probs []engine.LogProb
	for {
		e, err := g.Next(context.Background())
		if err == io.EOF {
			return g.Result(), probs
		}
		if err != nil {
			th.t.Fatal(err)
		}
		if e.LogProb != nil {
			probs = append(probs, *e.LogProb)
		}
	}
}

// says has the model answer a request with these tokens, and waits until the
// engine has prefilled the answer as the next prompt will have it. It returns
// the reply as a client reads it.
func (th *theatre) says(r Request, reply []int32) chat.Message {
	th.t.Helper()
	p, err := th.prompt(r)
	if err != nil {
		th.t.Fatal(err)
	}
	th.reply.set(len(p.tokens), append(reply, th.ids[chat.TurnEnd]))
	got := complete(th.t, th.stage, r)
	m := chat.Message{Role: "assistant", Content: chat.Text(got.content)}
	if got.reasoning != "" {
		m.Reasoning = &got.reasoning
	}
	for _, name := range got.names {
		m.ToolCalls = append(m.ToolCalls, chat.ToolCall{Name: name, Arguments: json.RawMessage(got.arguments)})
	}
	for range 5000 {
		if s := th.engine.Status(); s.State == engine.Ready && !s.Ahead {
			return m
		}
		time.Sleep(time.Millisecond)
	}
	th.t.Fatal("the reply was never prefilled")
	return m
}

// length returns the tokens of a conversation in the form that it has as the
// head of a longer one.
func (th *theatre) length(r Request) int {
	th.t.Helper()
	next := says("assistant", "?")
	if last := r.Messages[len(r.Messages)-1]; len(last.ToolCalls) > 0 {
		next = says("tool", "?")
	} else if last.Role == "assistant" || last.Role == "system" {
		next = says("user", "?")
	}
	longer := r.and(next)
	rendered, err := chat.Render(longer.Messages, chat.Options{Tools: r.Tools, PreserveThinking: r.PreserveThinking})
	if err != nil {
		th.t.Fatal(err)
	}
	tokens, _ := th.encode(rendered.Segments)
	for len(tokens) > 0 && tokens[len(tokens)-1] != th.ids[chat.TurnStart] {
		tokens = tokens[:len(tokens)-1]
	}
	return len(tokens) - 1
}

// parts returns how many tokens two prompts share at their beginning.
func (th *theatre) parts(a, b Request) int {
	th.t.Helper()
	x, err := th.Encode(a)
	if err != nil {
		th.t.Fatal(err)
	}
	y, err := th.Encode(b)
	if err != nil {
		th.t.Fatal(err)
	}
	n := 0
	for n < min(len(x), len(y)) && x[n] == y[n] {
		n++
	}
	return n
}

func says(role, text string) chat.Message { return chat.Message{Role: role, Content: chat.Text(text)} }

// talk is a conversation.
func talk(messages ...chat.Message) Request { return Request{Messages: messages} }

// and goes on with a conversation.
func (r Request) and(messages ...chat.Message) Request {
	r.Messages = append(slices.Clone(r.Messages), messages...)
	return r
}

func words(seed, n int) string {
	list := strings.Fields("the lighthouse keeper wrote a line in his book each night while rain fell on grey stones and nobody read it but gulls")
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s ", list[(seed*7+i*i+i*3)%len(list)])
	}
	return strings.TrimSpace(b.String())
}

var careful = says("system", "You are a careful assistant. "+words(0, 40))

// The template gives the newest reply an empty think block and drops it once
// another message follows, so a prompt and its reply are never the head of the
// next prompt. Each turn hits at the end of the message before.
func TestEachTurnOfAChatHits(t *testing.T) {
	for _, tt := range []struct {
		name string
		lead []chat.Message
	}{
		{"with a system message", []chat.Message{careful}},
		{"without", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			th := newTheatre(t)
			r, hit := talk(tt.lead...), 0
			for i := range 8 {
				r = r.and(says("user", words(i, 20)))
				th.asks(r, want{cached: hit})
				hit = th.length(r)
				r = r.and(says("assistant", words(100+i, 30)))
			}
		})
	}
}

// With time between the turns, each hits behind the reply.
func TestEachTurnHitsBehindTheReply(t *testing.T) {
	for _, tt := range []struct {
		name     string
		thinking bool
		preserve bool
		reply    func(s *stage, i int) []int32
		sends    func(m chat.Message) chat.Message // what the client makes of it
	}{
		{"as it was", false, false, plain, same},
		{"trimmed", false, false, spaced, func(m chat.Message) chat.Message {
			return says(m.Role, strings.TrimSpace(m.Content[0].Text))
		}},
		{"with white space around it", false, false, plain, func(m chat.Message) chat.Message {
			return says(m.Role, "\n "+m.Content[0].Text+"\n\n")
		}},
		{"with its thought", true, false, thoughtful, same},
		{"without its thought", true, false, thoughtful, func(m chat.Message) chat.Message { m.Reasoning = nil; return m }},
		{"with a thought that stays", true, true, thoughtful, same},
	} {
		t.Run(tt.name, func(t *testing.T) {
			th := newTheatre(t)
			r, hit := talk(careful), 0
			r.Thinking, r.PreserveThinking = tt.thinking, tt.preserve
			for i := range 4 {
				r = r.and(says("user", words(i, 20)))
				th.asks(r, want{cached: hit})
				r = r.and(tt.sends(th.says(r, tt.reply(th.stage, i))))
				hit = th.length(r)
			}
		})
	}
}

func same(m chat.Message) chat.Message { return m }

func plain(s *stage, i int) []int32 { return s.tok.Encode(words(100+i, 30)) }

func spaced(s *stage, i int) []int32 { return s.tok.Encode("\n" + words(100+i, 30) + " \n") }

func thoughtful(s *stage, i int) []int32 {
	return control(s.tok, words(200+i, 40)+"\n", chat.ThinkEnd, "\n\n", words(100+i, 30))
}

// A client that changes a reply inside still hits at its own message, and is
// told where the change is: by the key of the conversation, or where enough
// came before that this can't be another one.
func TestChangedReplyHitsAtTheMessageBefore(t *testing.T) {
	for _, tt := range []struct {
		name, key string
		changed   func(string) string
	}{
		{"at its beginning", "a talk", func(s string) string { return strings.Replace(s, " ", "  ", 1) }},
		{"at its end", "", func(s string) string { return s + "!" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			th := newTheatre(t)
			r := talk(careful, says("user", words(1, 30)))
			r.CacheKey = tt.key
			m := th.says(r, plain(th.stage, 1))
			next := r.and(says("assistant", tt.changed(m.Content[0].Text)), says("user", "Go on."))
			at := th.parts(next, r.and(m, says("user", "Go on.")))
			th.asks(next, want{cached: th.length(r), miss: &engine.CacheMiss{Reason: engine.MissChanged, Position: at}})
		})
	}
}

var weather = []json.RawMessage{json.RawMessage(`{"type":"function","function":{"name":"get_weather","description":"Weather of a city","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}`)}

func calls(i int) chat.Message {
	return chat.Message{Role: "assistant", ToolCalls: []chat.ToolCall{{
		Name: "get_weather", Arguments: json.RawMessage(fmt.Sprintf(`{"city":"Paris %d"}`, i)),
	}}}
}

// Within a loop of tool calls the think blocks stay, and each request hits at
// the answer before. A new message drops them all: what is left is the head up
// to the message that the loop began with, and it must have been kept.
func TestToolLoopThenAMessage(t *testing.T) {
	th := newTheatre(t)
	r := talk(careful, says("user", "What is the weather in twelve cities?"))
	r.Tools, r.CacheKey = weather, "a talk"
	question, hit := th.length(r), 0
	for i := range 12 {
		th.asks(r, want{cached: hit})
		hit = th.length(r)
		r = r.and(calls(i), says("tool", words(i, 25)))
	}
	th.asks(r, want{cached: hit})
	next := r.and(says("assistant", "It rains."), says("user", "And tomorrow?"))
	at := th.parts(next, r)
	th.asks(next, want{cached: question, miss: &engine.CacheMiss{Reason: engine.MissChanged, Position: at}})
	// From there on it is a chat again.
	second := th.length(next)
	th.asks(next.and(says("assistant", "Sun."), says("user", "Thanks.")), want{cached: second})
}

// With time between them, the loop's requests hit behind each call, and the
// message after it hits behind the last reply.
func TestToolLoopWithTime(t *testing.T) {
	th := newTheatre(t)
	r := talk(careful, says("user", "What is the weather in twelve cities?"))
	r.Tools = weather
	hit := 0
	for i := range 12 {
		th.asks(r, want{cached: hit})
		m := th.says(r, control(th.tok, chat.CallStart,
			fmt.Sprintf("\n<function=get_weather>\n<parameter=city>\nParis %d\n</parameter>\n</function>\n", i), chat.CallEnd))
		if len(m.ToolCalls) != 1 {
			t.Fatalf("the reply has %d calls, want one", len(m.ToolCalls))
		}
		r = r.and(m)
		hit = th.length(r)
		r = r.and(says("tool", words(i, 25)))
	}
	th.asks(r, want{cached: hit})
	r = r.and(th.says(r, plain(th.stage, 1)))
	next := r.and(says("user", "And tomorrow?"))
	before, _ := th.foresee(Request{Messages: r.Messages[:len(r.Messages)-1], Tools: weather}, r.Messages[len(r.Messages)-1])
	th.asks(next, want{cached: len(before)})
}

// No reuse past the first tool that differs.
func TestOtherToolsAreOtherPrompts(t *testing.T) {
	th := newTheatre(t)
	time := []json.RawMessage{json.RawMessage(`{"type":"function","function":{"name":"get_time","parameters":{"type":"object","properties":{}}}}`)}
	a := talk(careful, says("user", words(1, 30)))
	a.Tools = weather
	b, none := a, a
	b.Tools, none.Tools = time, nil
	th.asks(a, want{})
	th.asks(b, want{miss: &engine.CacheMiss{Reason: engine.MissChanged, Position: th.parts(a, b)}})
	th.asks(none, want{}) // the template's own first words are no hit to expect
	th.asks(a, want{cached: th.length(a), miss: nil})
}

func TestEdits(t *testing.T) {
	system := func(th *theatre) int { return th.length(talk(careful)) }
	base := talk(careful, says("user", words(1, 30)), says("assistant", words(2, 30)), says("user", words(3, 30)))
	for _, tt := range []struct {
		name   string
		next   Request
		cached func(th *theatre) int
		missed bool // where no key says that it is the same conversation
	}{
		{"the same again", base, func(th *theatre) int { return th.length(base) }, false},
		{"another ending of the last message",
			talk(append(slices.Clone(base.Messages[:3]), says("user", words(3, 30)+" or not"))...),
			func(th *theatre) int { return th.length(talk(base.Messages[:3]...)) }, true},
		{"another last message",
			talk(append(slices.Clone(base.Messages[:3]), says("user", words(9, 30)))...),
			func(th *theatre) int { return th.length(talk(base.Messages[:3]...)) }, false},
		{"another first message",
			talk(careful, says("user", words(7, 30)), says("assistant", words(2, 30)), says("user", words(3, 30))),
			system, false},
		{"another system message",
			talk(says("system", "You are a careless assistant."), base.Messages[1], base.Messages[2], base.Messages[3]),
			func(*theatre) int { return 0 }, false},
		{"the last two messages taken back",
			talk(base.Messages[:2]...),
			system, true},
	} {
		for _, key := range []string{"", "a talk"} {
			t.Run(tt.name+" "+key, func(t *testing.T) {
				th := newTheatre(t)
				first, next := base, tt.next
				first.CacheKey, next.CacheKey = key, key
				th.asks(first, want{})
				w := want{cached: tt.cached(th)}
				if at := th.parts(first, next); tt.missed || key != "" && tt.name != "the same again" {
					w.miss = &engine.CacheMiss{Reason: engine.MissChanged, Position: at}
				}
				th.asks(next, w)
			})
		}
	}
}

func TestPromptsOfTokens(t *testing.T) {
	tok := demoTokenizer(t)
	text := tok.Encode(words(5, 400))
	stored := text[:300]
	other := slices.Clone(text[:260])
	other[200]++
	const edge = 256 // the last edge before the stored prompt's end
	for _, tt := range []struct {
		name   string
		prompt []int32
		want   want
	}{
		{"the same", stored, want{cached: edge}},
		{"one shorter", text[:299], want{cached: edge}},
		{"one longer", text[:301], want{cached: edge}},
		{"much longer", text[:390], want{cached: edge}},
		{"up to the snapshot", text[:edge], want{}},
		{"one behind the snapshot", text[:edge+1], want{cached: edge}},
		{"much shorter", text[:10], want{}},
		{"changed before the snapshot", other, want{miss: &engine.CacheMiss{Reason: engine.MissChanged, Position: 200}}},
		{"one token", text[:1], want{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			th := newTheatre(t)
			th.asks(Request{Tokens: stored}, want{})
			th.asks(Request{Tokens: tt.prompt}, tt.want)
		})
	}
	t.Run("of a rendered conversation", func(t *testing.T) {
		th := newTheatre(t)
		r := talk(careful, says("user", words(1, 30)))
		th.asks(r, want{})
		tokens, err := th.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		th.asks(Request{Tokens: tokens}, want{cached: th.length(r)})
	})
}

// Between the turns of a long conversation a client asks for a title and tags.
func TestSideRequestsLeaveALongConversation(t *testing.T) {
	th := newTheatre(t)
	r := talk(careful)
	for i := range 10 {
		r = r.and(says("user", words(i, 1200)), says("assistant", words(50+i, 1200)))
	}
	r = r.and(says("user", "Sum it up."))
	if n := th.length(r); n < 30_000 || n > 60_000 {
		t.Fatalf("the conversation has %d tokens, want 30,000 or somewhat more", n)
	}
	th.asks(r, want{})
	for i := range 4 {
		th.asks(talk(says("user", fmt.Sprint("Write a title of five words for chat ", i, "."))), want{})
		th.asks(talk(says("system", "You write tags."), says("user", fmt.Sprint("Tags for chat ", i, ", please."))), want{})
		hit := th.length(r)
		r = r.and(says("assistant", words(i, 40)), says("user", words(20+i, 15)))
		th.asks(r, want{cached: hit})
	}
}

// A client that lost patience sends the same again.
func TestCancelledPrefillIsNotLost(t *testing.T) {
	th := newTheatre(t)
	long := talk(careful, says("user", words(1, 8000)))
	ctx, cancel := context.WithCancel(context.Background())
	th.device.Step = func(backend.Call) error {
		if th.device.Counts().PrefillRows > 4000 {
			cancel()
		}
		return nil
	}
	c, err := th.Start(ctx, Request{Messages: long.Messages, LogProbs: engine.NoLogProbs})
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = c.Next()
	}
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled completion ended with %v", err)
	}
	done := th.device.Counts().PrefillRows
	p, err := th.prompt(long)
	if err != nil {
		t.Fatal(err)
	}
	if done >= len(p.tokens) {
		t.Fatalf("%d of %d tokens were evaluated, want the cancel to come before the end", done, len(p.tokens))
	}
	th.asks(long, want{cached: done})
}

// Of several answers to one prompt each but the first finds it evaluated, and
// whichever the conversation goes on with is as good as cold.
func TestSeveralAnswersToOnePrompt(t *testing.T) {
	th := newTheatre(t)
	r := talk(careful, says("user", words(1, 300)))
	th.reply.set(-1, append(plain(th.stage, 1), th.ids[chat.TurnEnd]))
	var answers []*Completion
	for range 3 {
		c, err := th.Start(context.Background(), Request{Messages: r.Messages, LogProbs: engine.NoLogProbs})
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, c)
	}
	for i, c := range answers {
		var e Event
		var err error
		for e.Kind != Done && err == nil {
			e, err = c.Next()
		}
		if err != nil {
			t.Fatal(err)
		}
		hit := 0
		if i > 0 {
			hit = th.length(r)
		}
		th.compare(e.Result.CachedTokens, e.Result.Miss, want{cached: hit})
	}
	for range 5000 {
		if !th.engine.Status().Ahead {
			break
		}
		time.Sleep(time.Millisecond)
	}
	m := says("assistant", words(101, 30))
	th.asks(r.and(m, says("user", "Go on.")), want{cached: th.length(r.and(m))})
}
