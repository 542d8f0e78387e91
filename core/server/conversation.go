package server

import (
	"fmt"

	"calla/core/chat"
)

// conversation builds the messages of a prompt from those of an API.
//
// The model's template has one system message, at the start, and no ids: which
// result answers which call is told by their order. So the system messages that
// begin a conversation become one, and results are put in the order of their
// calls, each call having one.
type conversation struct {
	messages []chat.Message
	origins  []string // where each message stands in the request
	open     []pending
}

// pending is a call of the last assistant message that waits for its result.
type pending struct {
	id, name string
	origin   string // of the call
	result   *chat.Message
	from     string // the result's origin
}

func (c *conversation) add(origin string, m chat.Message) {
	c.messages = append(c.messages, m)
	c.origins = append(c.origins, origin)
}

// system adds a system message. Whether it may stand here is for the template
// to say.
func (c *conversation) system(origin string, content []chat.Part) *apiError {
	if err := c.settle(); err != nil {
		return err
	}
	if len(c.messages) == 1 && c.messages[0].Role == "system" {
		first := &c.messages[0]
		first.Content = append(append(first.Content, chat.Text("\n\n")...), content...)
		return nil
	}
	c.add(origin, chat.Message{Role: "system", Content: content})
	return nil
}

func (c *conversation) user(origin string, content []chat.Part) *apiError {
	if err := c.settle(); err != nil {
		return err
	}
	c.add(origin, chat.Message{Role: "user", Content: content})
	return nil
}

// assistant adds a message of the model's.
func (c *conversation) assistant(origin string, m chat.Message) *apiError {
	if err := c.settle(); err != nil {
		return err
	}
	m.Role = "assistant"
	c.add(origin, m)
	return nil
}

// call adds a call to the assistant message that was added last.
func (c *conversation) call(origin, id string, call chat.ToolCall) *apiError {
	for _, p := range c.open {
		if p.id == id {
			return badField(codeValue, origin, "%s: its id is another call's too", origin)
		}
	}
	last := &c.messages[len(c.messages)-1]
	last.ToolCalls = append(last.ToolCalls, call)
	c.open = append(c.open, pending{id: id, name: call.Name, origin: origin})
	return nil
}

// result adds what a tool gave. idField is the field that names the call.
func (c *conversation) result(origin, idField, id string, content []chat.Part) (name string, err *apiError) {
	for i := range c.open {
		p := &c.open[i]
		if p.id != id {
			continue
		}
		if p.result != nil {
			return "", badField(codeValue, origin+"."+idField, "%s.%s: this call has a result already", origin, idField)
		}
		p.result, p.from = &chat.Message{Role: "tool", Content: content}, origin
		return p.name, nil
	}
	return "", badField(codeValue, origin+"."+idField, "%s.%s names no call of the assistant's message before it", origin, idField)
}

// settle adds the results of the open calls, which must all be there.
func (c *conversation) settle() *apiError {
	for _, p := range c.open {
		if p.result == nil {
			return badField(codeValue, p.origin, "%s: this call has no result after it", p.origin)
		}
		c.add(p.from, *p.result)
	}
	c.open = nil
	return nil
}

// arguments returns the arguments of an earlier call, which APIs have as a
// string of JSON.
func arguments(origin, s string) ([]byte, *apiError) {
	if s == "" {
		return []byte("{}"), nil
	}
	if !isObject([]byte(s)) {
		return nil, badField(codeValue, origin, "%s is not a JSON object", origin)
	}
	return []byte(s), nil
}

// renameOrigin puts the request's own name of a message in the place of the
// conversation's.
func renameOrigin(path string, origins []string) string {
	var i int
	if n, err := fmt.Sscanf(path, "messages[%d]", &i); n != 1 || err != nil || i >= len(origins) {
		return path
	}
	return origins[i] + path[len(fmt.Sprintf("messages[%d]", i)):]
}
