package contract

import (
	"context"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"calla/core/backend/backendtest"
	"calla/core/chat"
	"calla/core/completion"
	"calla/core/engine"
	"calla/core/model"
	"calla/core/server"
	"calla/core/tokenizer"
)

// What the scripted model says. It spells each text in bytes, so that every
// character of several bytes comes in parts.
const (
	saysAnswer = "Paris: 漢字 é, no more."
	saysEmoji  = "👩‍👩‍👧‍👦 漢字 é"
	saysCall   = "<tool_call>\n<function=get_weather>\n<parameter=city>\nOs\"lo\n</parameter>\n</function>\n</tool_call>"
	saysResult = "It is cloudy in Oslo."
	saysThink  = "They ask for a capital."
)

// actor is a model that says what a script has.
type actor struct {
	tok             *tokenizer.Tokenizer
	bytes           [256]int32
	think, endThink int32
	newlines, end   []int32
}

func newActor(t testing.TB) *actor {
	t.Helper()
	var files [2][]byte
	for i, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		b, err := os.ReadFile("../../../bundle/demo/" + name)
		if err != nil {
			t.Fatal(err)
		}
		files[i] = b
	}
	tok, err := tokenizer.Load(files[0], files[1])
	if err != nil {
		t.Fatal(err)
	}
	a := &actor{tok: tok, newlines: tok.Encode("\n\n")}
	a.think, _ = tok.TokenID(chat.ThinkStart)
	a.endThink, _ = tok.TokenID(chat.ThinkEnd)
	end, _ := tok.TokenID(chat.TurnEnd)
	a.end = []int32{end}
	for id := range int32(tok.VocabSize()) {
		if b := tok.Bytes(id); len(b) == 1 {
			a.bytes[b[0]] = id
		}
	}
	return a
}

// spell returns the tokens of a text, its control tokens as they are.
func (a *actor) spell(text string) []int32 {
	var ids []int32
	for text != "" {
		if i := strings.IndexByte(text, '<'); i == 0 {
			if name, _, ok := strings.Cut(text, ">"); ok {
				if id, ok := a.tok.TokenID(name + ">"); ok {
					ids, text = append(ids, id), text[len(name)+1:]
					continue
				}
			}
		}
		ids, text = append(ids, a.bytes[text[0]]), text[1:]
	}
	return ids
}

// next is the token that the model wants after tokens.
func (a *actor) next(tokens []int32) int32 {
	open := lastIndex(tokens, a.think)
	if open < 0 { // text that is no conversation goes on by itself
		return a.bytes['a'+byte(tokens[len(tokens)-1]%26)]
	}
	prompt, said := a.tok.Decode(tokens[:open], false), tokens[open+2:]
	closed := slices.Index(said, a.endThink)
	if closed < 0 {
		return at(append(a.spell(saysThink+"\n"), a.endThink), len(said))
	}
	if after := len(said) - closed - 1; after < len(a.newlines) {
		return a.newlines[after]
	}
	return at(append(a.spell(a.reply(prompt)), a.end...), len(said)-closed-1-len(a.newlines))
}

// reply chooses what is said to a prompt.
func (a *actor) reply(prompt string) string {
	switch {
	case strings.Contains(prompt, "<tool_response>"):
		return saysResult
	case strings.Contains(prompt, "get_weather"):
		return saysCall
	case strings.Contains(prompt, "Repeat exactly"):
		return saysEmoji
	}
	return saysAnswer
}

func at(script []int32, i int) int32 { return script[min(i, len(script)-1)] }

func lastIndex(ids []int32, id int32) int {
	for i := len(ids) - 1; i >= 0; i-- {
		if ids[i] == id {
			return i
		}
	}
	return -1
}

const testKey = "contract-key-0123456789"

// scripted serves the actor through the real engine, completion and server.
func scripted(t testing.TB) http.Handler {
	t.Helper()
	a := newActor(t)
	vocab, turn, stops, err := completion.EngineOptions(a.tok, nil)
	if err != nil {
		t.Fatal(err)
	}
	device := &backendtest.Device{Vocab: vocab, Next: a.next}
	load := func(ctx context.Context, progress func(done, total int64)) (*model.Model, func() error, error) {
		w, err := device.Load(ctx, nil, progress)
		if err != nil {
			return nil, nil, err
		}
		m := model.New(device.Config(), w)
		return m, m.Close, nil
	}
	e, err := engine.New(load, engine.Options{
		MaxSeq: 2048, PrefillChunk: 2048, Queue: 64, CacheEntries: 1,
		Vocab: vocab, Turn: turn, StopTokens: stops,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		e.Close(ctx)
	})
	c, err := completion.New(e, a.tok)
	if err != nil {
		t.Fatal(err)
	}
	return server.New(server.Options{
		Model:  server.Model{ID: "org/Scripted", Aliases: []string{"scripted"}, Created: time.Unix(1, 0), OwnedBy: "org", Context: 2048, Vocab: vocab},
		Start:  func(ctx context.Context, r completion.Request) (server.Stream, error) { return c.Start(ctx, r) },
		Encode: c.Encode, Decode: c.Decode, Key: testKey,
		Engine: func() server.EngineStatus { return server.EngineStatus{State: server.StateReady} },
	})
}

// serving is a handler's URL for the length of a test.
func serving(t testing.TB, h http.Handler) string {
	t.Helper()
	listeners, err := server.Listen("127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listeners, h, 0) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return "http://" + listeners[0].Addr().String()
}
