package server

import (
	"calla/core/completion"
	"calla/core/engine"
)

// responsesVoice answers in the words of OpenAI's responses.
type responsesVoice struct {
	response *responseBody
	turns    blockTurns
	sequence int
}

func newResponsesVoice(model string, c *responsesRequest, r completion.Request) *responsesVoice {
	return &responsesVoice{response: newResponse(model, c, r)}
}

// responsesEvent is any event of the stream; each type has some of the fields.
type responsesEvent struct {
	Type           string          `json:"type"`
	SequenceNumber int             `json:"sequence_number"`
	Response       *responseBody   `json:"response,omitempty"`
	OutputIndex    *int            `json:"output_index,omitempty"`
	ItemID         string          `json:"item_id,omitempty"`
	ContentIndex   *int            `json:"content_index,omitempty"`
	Item           any             `json:"item,omitempty"`
	Part           any             `json:"part,omitempty"`
	Delta          string          `json:"delta,omitempty"`
	Text           *string         `json:"text,omitempty"`
	LogProbs       *[]tokenLogProb `json:"logprobs,omitempty"`
	Name           string          `json:"name,omitempty"`
	Arguments      *string         `json:"arguments,omitempty"`
	Code           string          `json:"code,omitempty"`
	Message        string          `json:"message,omitempty"`
	Param          *string         `json:"param,omitempty"`
	Progress       *progressBody   `json:"progress,omitempty"`
}

// send numbers an event and writes it.
func (v *responsesVoice) send(out *eventWriter, kind string, e responsesEvent) {
	e.Type, e.SequenceNumber = kind, v.sequence
	v.sequence++
	out.event(kind, e)
}

func (v *responsesVoice) begin([][]int32) {}

func (v *responsesVoice) whole(answers []*answer) any { return v.response.finish(answers[0]) }

func (v *responsesVoice) open(out *eventWriter) {
	v.send(out, "response.created", responsesEvent{Response: v.response})
	v.send(out, "response.in_progress", responsesEvent{Response: v.response})
}

func (v *responsesVoice) event(out *eventWriter, _ int, e completion.Event, a *answer) {
	v.turns.follow(a,
		func(i int, b *block) { v.beginBlock(out, i, b) },
		func(i int, b *block) { v.endBlock(out, i, b, a) })
	i := len(a.blocks) - 1
	switch e.Kind {
	case completion.Reasoning:
		at := v.part(i, a.blocks[i])
		at.Delta = e.Text
		v.send(out, "response.reasoning_text.delta", at)
	case completion.Content:
		at := v.part(i, a.blocks[i])
		list := logProbsOf(e.Tokens)
		at.Delta, at.LogProbs = e.Text, &list
		v.send(out, "response.output_text.delta", at)
	case completion.Arguments:
		v.send(out, "response.function_call_arguments.delta", responsesEvent{
			OutputIndex: &i, ItemID: itemID(a.blocks[i]), Delta: e.Text,
		})
	}
}

// part returns an event about the one part of a block.
func (v *responsesVoice) part(index int, b *block) responsesEvent {
	first := 0
	return responsesEvent{OutputIndex: &index, ItemID: itemID(b), ContentIndex: &first}
}

func (v *responsesVoice) beginBlock(out *eventWriter, i int, b *block) {
	v.send(out, "response.output_item.added", responsesEvent{OutputIndex: &i, Item: responseItem(b, inProgress)})
	if b.kind == completion.ToolCall {
		return
	}
	at := v.part(i, b)
	at.Part = partOf(b, false)
	v.send(out, "response.content_part.added", at)
}

func (v *responsesVoice) endBlock(out *eventWriter, i int, b *block, a *answer) {
	all := b.text.String()
	switch b.kind {
	case completion.Reasoning:
		at := v.part(i, b)
		at.Text = &all
		v.send(out, "response.reasoning_text.done", at)
	case completion.Content:
		at := v.part(i, b)
		list := logProbsOf(b.tokens)
		at.Text, at.LogProbs = &all, &list
		v.send(out, "response.output_text.done", at)
	case completion.ToolCall:
		v.send(out, "response.function_call_arguments.done", responsesEvent{
			OutputIndex: &i, ItemID: itemID(b), Name: b.name, Arguments: &all,
		})
	}
	if b.kind != completion.ToolCall {
		at := v.part(i, b)
		at.Part = partOf(b, true)
		v.send(out, "response.content_part.done", at)
	}
	status := completed
	if a.result != nil && a.result.Reason == completion.ReasonLength {
		status = incomplete
	}
	v.send(out, "response.output_item.done", responsesEvent{OutputIndex: &i, Item: responseItem(b, status)})
}

// partOf returns the one part of a thought or a message.
func partOf(b *block, full bool) any {
	if b.kind == completion.Reasoning {
		return reasoningPart(b, full)
	}
	return contentPart(b, full)
}

func (v *responsesVoice) progress(out *eventWriter, p engine.Progress) {
	v.send(out, "calla.progress", responsesEvent{Progress: &progressBody{string(p.Stage), p.Done, p.Total}})
}

func (v *responsesVoice) beat(out *eventWriter) { out.comment("waiting") }

func (v *responsesVoice) close(out *eventWriter, answers []*answer) {
	r := v.response.finish(answers[0])
	v.send(out, "response."+r.Status, responsesEvent{Response: r})
}

func (v *responsesVoice) fail(out *eventWriter, e *apiError) {
	v.send(out, "error", responsesEvent{Code: e.code, Message: e.message, Param: filled(e.param)})
	r := *v.response
	r.Status, r.Error = failed, &responseError{e.code, e.message}
	r.repeatNothing()
	v.send(out, "response.failed", responsesEvent{Response: &r})
}
