package engine

import (
	"errors"
	"fmt"
	"time"
)

// Request asks for one generation.
type Request struct {
	// Prompt is the whole prompt, at least one token. The engine reuses what it
	// has evaluated before.
	Prompt []int32
	// MaxTokens bounds the completion; 0 lets it run to the end of the context.
	MaxTokens int
	Sampling  Sampling
	// LogProbs asks for the log-probability of each token and of that many of
	// the likeliest (at most MaxTopLogProbs); -1, as no other negative number,
	// asks for none.
	LogProbs int
	// Guide, where not nil, steers the choice of tokens.
	Guide Guide
	// Keep are positions in the prompt after which a later prompt may go on in
	// another way, such as the end of the system block and of the last message
	// from a person. The engine takes snapshots there; positions at which the
	// prompt can't be cut are passed over.
	Keep []int
	// CacheKey says which conversation this is; it only picks which entry of
	// the prefix cache is tried first.
	CacheKey string
}

// NoLogProbs is the value of Request.LogProbs that asks for none.
const NoLogProbs = -1

// MaxTopLogProbs is the most alternatives a request may ask for, as in OpenAI's
// API.
const MaxTopLogProbs = 20

// Guide steers a generation. Its methods are called by the engine's worker and
// must be quick.
type Guide interface {
	// Next is called before each token is chosen with the tokens generated so
	// far, and says what it may be. An error ends the generation with it.
	Next(generated []int32) (Choice, error)
}

// Choice is what a guide leaves of the vocabulary. The zero value leaves all.
type Choice struct {
	// Allowed, where not nil, has a bit for each token that may be chosen, token
	// t at bit t%64 of word t/64; at least one is set. It is the guide's until
	// its next call.
	Allowed []uint64
	// Forced says that it is Token in any case. A forced token is generated like
	// any other.
	Forced bool
	Token  int32
}

// Sampling says how a token is chosen from logits. The zero value is greedy.
type Sampling struct {
	Temperature       float64           // 0 is greedy
	TopP              float64           // 0 or 1: off
	TopK              int               // 0: off
	MinP              float64           // 0: off
	PresencePenalty   float64           // taken off the logit of each token generated before
	FrequencyPenalty  float64           // the same, once for each time it was
	RepetitionPenalty float64           // 0 or 1: off; at most 10; divides, over prompt and completion
	LogitBias         map[int32]float64 // added to logits
	// Seed makes the choice repeatable: the same seed, prompt and parameters
	// give the same tokens, whatever the load. Nil takes a random one.
	Seed *uint64
}

// FinishReason says why a generation ended.
type FinishReason string

// The reasons for which a generation ends by itself.
const (
	FinishStop   FinishReason = "stop"   // a stop token, or Generation.Stop
	FinishLength FinishReason = "length" // MaxTokens or the end of the context
)

// Stage says what a generation waits for.
type Stage string

// The stages of a generation, in their order.
const (
	StageQueued   Stage = "queued"  // Done requests are before it
	StageLoading  Stage = "loading" // Done of Total bytes of weights
	StagePrefill  Stage = "prefill" // Done of Total prompt tokens
	StageDecoding Stage = "decoding"
)

// Progress is how far a generation is.
type Progress struct {
	Stage       Stage
	Done, Total int64
}

// Event is one thing that happened in a generation: a token, or, where Token
// is negative, progress.
type Event struct {
	Token    int32
	LogProb  *LogProb // where asked for
	Progress Progress
}

// LogProb is a token's log-probability under the model, before sampling
// parameters, and those of the likeliest tokens, by falling probability.
type LogProb struct {
	Token   int32
	LogProb float64
	Top     []LogProb
}

// Result is how a generation ended.
type Result struct {
	Reason           FinishReason
	PromptTokens     int
	CachedTokens     int // of the prompt, taken from the prefix cache
	CompletionTokens int // stop token not counted
	// StopToken is the token that ended the generation, or -1.
	StopToken int32
	// Miss says why a hit that could have been expected did not come.
	Miss *CacheMiss
	// Warning tells of a completion that ended before its time, or is empty.
	Warning string
	Timing  Timing
}

// CacheMiss is a prompt that continued a cached sequence less far than it
// might have.
type CacheMiss struct {
	Reason   MissReason
	Position int // of the first token that differs or must be evaluated again
}

// MissReason says why cached tokens were not reused.
type MissReason string

// Timing is how long the parts of a generation took.
type Timing struct {
	Queue   time.Duration
	Load    time.Duration
	Prefill time.Duration
	Decode  time.Duration
}

// Errors of Submit and of generations, for callers that decide by them.
var (
	ErrQueueFull = errors.New("engine: queue is full")
	ErrStopped   = errors.New("engine: stopped")
	// ErrStuck is a device that does not answer. A request that ends with it
	// ends with a *DeviceError.
	ErrStuck = errors.New("engine: the device does not answer")
	// ErrNotANumber ends a generation whose logits are not numbers.
	ErrNotANumber = errors.New("engine: logits are not numbers")
)

// ContextError is a request that does not fit the context.
type ContextError struct {
	Prompt    int // tokens
	MaxTokens int // asked for; 0 where the request named none
	Limit     int // --max-seq
}

func (e *ContextError) Error() string {
	if e.MaxTokens > 0 && e.Prompt < e.Limit {
		return fmt.Sprintf("engine: prompt of %d tokens and completion of %d are over the context of %d tokens", e.Prompt, e.MaxTokens, e.Limit)
	}
	return fmt.Sprintf("engine: prompt of %d tokens leaves no room in the context of %d tokens", e.Prompt, e.Limit)
}

// DeviceError is a fault of the device, or a panic in a step. The generation's
// state is dropped.
type DeviceError struct{ Err error }

func (e *DeviceError) Error() string { return fmt.Sprintf("engine: device failed: %v", e.Err) }

func (e *DeviceError) Unwrap() error { return e.Err }
