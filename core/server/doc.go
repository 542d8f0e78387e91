// Package server speaks HTTP for one model: OpenAI's chat completions,
// completions and responses, Anthropic's messages, and what an operator reads.
//
// It turns JSON into completion.Request and completion.Event into JSON, and
// promises three things. Nothing is ignored: one table (see Field) says of each
// field whether it is honoured, and everything else is a 400 that names it.
// Nothing is said late: validation, prompt length and a full queue are plain
// HTTP errors; once a stream's headers are out, every fault is an event in it.
// Nothing is told: no log, metric, error or status repeats text or tokens of
// people. Only programs on this machine are served, unless a key says who else.
//
// What a conversation means to the model, tokens and scheduling belong to the
// packages below, reached through the few functions of Options.
package server
