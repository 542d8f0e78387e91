// Package core is the root of the engine: pure Go, no cgo, built and tested
// on every system. It holds no code of its own; this page is the glossary that
// every package below it keeps to.
//
// # Files
//
//	checkpoint          the files of a model in one folder
//	shard               one safetensors file of a checkpoint
//	weight              one named tensor in a shard
//	quantisation group  64 neighbouring weights of a row, which share one scale
//	                    and one bias: value = scale × code + bias
//
// # Text
//
//	token      a number of the vocabulary
//	segment    in package chat: a stretch of a rendered prompt, either a control
//	           token of the template or text from people
//	prompt     the tokens a request begins with
//	completion the tokens generated after it
//
// # Answers that fit
//
//	grammar    a set of texts that a completion, or a part of it, is held to
//	lexeme     a part of a grammar that needs no stack: a string, a number
//	control    in package grammar: what stands for a control token
//	automaton  a grammar bound to a vocabulary
//	mask       the tokens that may come next
//	guide      what steers a generation: it forces a token or restricts the choice
//
// # Evaluation
//
//	row          one token's vector
//	prefill      evaluation of prompt tokens, many rows a call
//	decode       evaluation of one generated token
//	call         one evaluation of consecutive rows of one state
//	step         a call that was committed to the device
//	ahead        of a step: committed before the token that it evaluates was read
//	chunk        the most rows of one prefill call
//	segment start  a position at which the chunked delta rule starts its grid
//	             again: 0, and after each end of turn
//	sub-chunk    at most 64 rows, counted from the segment start; the unit of the
//	             chunked delta rule
//	logits       one number for each row of the vocabulary
//	sampler      chooses a token from logits
//
// # State
//
//	session          one timeline of tokens
//	state            what a session has evaluated: KV cache, recurrent state and
//	                 conv state
//	KV cache         keys and values of the full-attention layers
//	recurrent state  S of the delta rule, one matrix a value head
//	conv state       the last rows that went into a causal convolution
//	snapshot         a saved recurrent and conv state, at one position
//	prefix cache     states and snapshots, found by token prefix
//
// # Devices
//
//	backend      an implementation of the blocks of a forward pass
//	device       the hardware a backend runs on
//	block        embed, delta net, attention, MoE or head
//	kernel       one function that runs on a device
//	encoder      turns blocks into dispatches
//	dispatch     one launch of a kernel over a grid of threadgroups
//	threadgroup  threads that share memory; made of simdgroups of 32 lanes
//
// # Layers
//
//	delta net      Gated DeltaNet: causal convolution, delta rule, gated norm
//	attention      gated full attention with grouped queries
//	router         chooses the experts of a row
//	expert         one routed feed-forward network
//	shared expert  the feed-forward network that every row passes through
package core
