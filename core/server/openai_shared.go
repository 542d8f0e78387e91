package server

import (
	"calla/core/completion"
)

// limitParams say where a completion ends.
type limitParams struct {
	MaxTokens           int       `json:"max_tokens"`
	MaxCompletionTokens int       `json:"max_completion_tokens"`
	Stop                stopTexts `json:"stop"`
}

// limit returns the smaller of the limits that were given, or 0.
func (p *limitParams) limit() int {
	if p.MaxTokens > 0 && p.MaxCompletionTokens > 0 {
		return min(p.MaxTokens, p.MaxCompletionTokens)
	}
	return max(p.MaxTokens, p.MaxCompletionTokens)
}

// Bounds of stop texts. OpenAI has four at most; Anthropic names no number.
const (
	maxStopBytes   = 1024
	maxOpenAIStops = 4
	maxStops       = 16
)

func stopField(name string) Field {
	one := text{min: 1, max: maxStopBytes}
	return Field{Name: name, Takes: either{one, list{of: one, max: maxOpenAIStops}}, Note: "ends the completion and is no part of it; within the thought it is not looked for"}
}

// streamParams say how an answer is sent.
type streamParams struct {
	Stream        bool `json:"stream"`
	StreamOptions struct {
		IncludeUsage    bool `json:"include_usage"`
		IncludeProgress bool `json:"include_progress"`
	} `json:"stream_options"`
}

func streamFields() object {
	return object{
		{Name: "stream", Takes: boolean{}, Note: "server-sent events"},
		{Name: "stream_options", Takes: object{
			{Name: "include_usage", Takes: boolean{}, Note: "usage in a last event; an answer that is not streamed always has it"},
			progressField(),
			{Name: "include_obfuscation", Takes: only{"false"}, Note: "events are not padded"},
		}},
	}
}

func progressField() Field {
	return Field{Name: "include_progress", Takes: boolean{}, Note: "beside OpenAI's fields; events tell how far queue, loading and prefill are"}
}

// sharedFields are those of all of OpenAI's APIs that ask for nothing here, or
// nothing that can be had.
func sharedFields() object {
	return object{
		{Name: "prompt_cache_key", Takes: text{}, Note: "which cached conversation is tried first; tokens decide"},
		{Name: "prompt_cache_options", Takes: object{
			{Name: "mode", Takes: only{`"implicit"`}, Note: "the prefix cache finds its own places"},
			{Name: "ttl", Note: "cached prefixes are kept while there is room"},
		}},
		{Name: "prompt_cache_retention", Takes: only{`"in_memory"`}, Note: "cached prefixes are kept while there is room"},
		{Name: "user", Takes: text{}, Note: "taken; nothing is kept of it"},
		{Name: "safety_identifier", Takes: text{}, Note: "taken; nothing is kept of it"},
		{Name: "metadata", Takes: free{of: text{}, max: 16, note: "object of strings"}, Note: "taken; nothing is kept of it"},
		{Name: "store", Takes: only{"false"}, Note: "nothing is stored"},
		{Name: "service_tier", Takes: only{`"auto"`, `"default"`}, Note: "there is one tier"},
		{Name: "verbosity", Takes: only{`"medium"`}, Note: "the model has no such switch"},
	}
}

func modelField() Field {
	return Field{Name: "model", Takes: text{}, Note: "the served id or an alias, exactly; anything else is a 404 that names the served id"}
}

// openAIUsage counts tokens the way OpenAI does. CacheMiss is beside its fields.
type openAIUsage struct {
	PromptTokens     int            `json:"prompt_tokens"`
	CompletionTokens int            `json:"completion_tokens"`
	TotalTokens      int            `json:"total_tokens"`
	PromptDetails    promptDetails  `json:"prompt_tokens_details"`
	CompletionDetail usageReasoning `json:"completion_tokens_details"`
	CacheMiss        *cacheMiss     `json:"cache_miss,omitempty"`
}

type promptDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

type usageReasoning struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

// cacheMiss says why tokens that might have come from the cache did not.
type cacheMiss struct {
	Reason   string `json:"reason"`
	Position int    `json:"position"` // the first token that was evaluated again
}

func missOf(r *completion.Result) *cacheMiss {
	if r.Miss == nil {
		return nil
	}
	return &cacheMiss{string(r.Miss.Reason), r.Miss.Position}
}

// usageOf counts n choices for each prompt: a prompt counts once, its
// completions each.
func usageOf(answers []*answer, n int) *openAIUsage {
	u := &openAIUsage{}
	for i, a := range answers {
		if i%n == 0 {
			u.PromptTokens += a.result.PromptTokens
			u.PromptDetails.CachedTokens += a.result.CachedTokens
			if u.CacheMiss == nil {
				u.CacheMiss = missOf(a.result)
			}
		}
		u.CompletionTokens += a.result.CompletionTokens
		u.CompletionDetail.ReasoningTokens += a.result.ReasoningTokens
	}
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	return u
}

// progressBody is how far a completion is.
type progressBody struct {
	Stage string `json:"stage"` // queued, loading, prefill or decoding
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
}

// unnamedEvents is what the streams of OpenAI's older APIs have in common.
type unnamedEvents struct{}

func (unnamedEvents) beat(out *eventWriter) { out.comment("waiting") }

func (unnamedEvents) fail(out *eventWriter, e *apiError) { out.event("", openAIError(e)) }
