package server

import (
	"context"
	"log/slog"
	"time"

	"calla/core/completion"
	"calla/core/engine"
)

// Stream is one completion on its way. Its methods are not called at the same
// time.
type Stream interface {
	// Prompt returns the tokens of the rendered prompt.
	Prompt() []int32
	// Next returns the next event, io.EOF after Done. It returns soon after the
	// context given to Start has ended.
	Next() (completion.Event, error)
	// Close ends the completion, if it has not ended, and frees what it holds.
	Close()
}

// Options are what a server needs of the packages below it, and how it is to
// behave.
type Options struct {
	Model   Model
	Version string // of the program
	// Instance is repeated in the status, for who started this server and must
	// tell it from another; empty says nothing.
	Instance string

	// Start admits a completion. A request that cannot be rendered, does not
	// fit the context or finds the queue full is refused here, before any
	// event.
	Start func(context.Context, completion.Request) (Stream, error)
	// Encode returns the tokens of the prompt that Start would evaluate.
	Encode func(completion.Request) ([]int32, error)
	// Decode returns the text of tokens.
	Decode func([]int32) (string, error)
	// Engine tells the engine's state. It is called often and must be quick.
	Engine func() EngineStatus

	// Key is the secret that requests must carry; empty asks for none.
	Key string
	// OpenModels lists the models to requests without a key too.
	OpenModels bool
	// Hosts are names, with or without a port, by which requests may call this
	// server beside those of the loopback interface.
	Hosts []string
	// Origins are the web pages that may call, as "https://example.org".
	Origins []string

	Log *slog.Logger // nil logs nothing
}

// Model says what is served.
type Model struct {
	ID      string
	Aliases []string // other names by which requests may ask for it
	Created time.Time
	OwnedBy string
	Context int // prompt and completion together, in tokens
	Vocab   int // token ids are below it
	Receipt Receipt
	// Thinking is how tokens are chosen where the model thinks and the request
	// says nothing about sampling: the checkpoint's generation_config.
	Thinking engine.Sampling
}

const (
	// maxBody bounds a request's body. The longest context is about 1.5 MB of
	// English; JSON's escapes make up to six bytes of one.
	maxBody = 16 << 20
	// maxDepth bounds arrays and objects in each other; schemas of tools are
	// what goes deepest.
	maxDepth = 100
	// maxValues bounds the values of a body. A prompt of token ids has one a
	// token.
	maxValues = 1 << 20
	// bodyTime is how long a client may take to send a body.
	bodyTime = 30 * time.Second
	// writeTime is how long a client may leave what it was sent unread.
	writeTime = 30 * time.Second
	// beatEvery is how often a stream is given a sign of life: at least one in
	// 10 s is promised.
	beatEvery = 5 * time.Second
)
