package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"
)

// eventWriter writes server-sent events. After the first error, which means that
// the client has gone, it writes nothing more.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buf     bytes.Buffer
	json    *json.Encoder
	err     error
}

// openEvents sends the headers of a stream at once.
func openEvents(w http.ResponseWriter) *eventWriter {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // a proxy must not hold events back
	w.WriteHeader(http.StatusOK)
	e := &eventWriter{w: w, control: http.NewResponseController(w)}
	e.json = json.NewEncoder(&e.buf)
	e.json.SetEscapeHTML(false)
	e.flush()
	return e
}

// event adds one event. name may be empty, as in OpenAI's older streams.
func (e *eventWriter) event(name string, v any) {
	if name != "" {
		e.buf.WriteString("event: ")
		e.buf.WriteString(name)
		e.buf.WriteByte('\n')
	}
	e.buf.WriteString("data: ")
	if err := e.json.Encode(v); err != nil { // ends with a newline
		panic("server: encode an event: " + err.Error())
	}
	e.buf.WriteByte('\n')
}

// done adds the event that ends OpenAI's older streams.
func (e *eventWriter) done() { e.buf.WriteString("data: [DONE]\n\n") }

// comment adds a line that clients skip.
func (e *eventWriter) comment(s string) { e.buf.WriteString(": " + s + "\n\n") }

// maxBatch is how many bytes of events go out at once, where they come faster
// than they are written.
const maxBatch = 16 << 10

func (e *eventWriter) full() bool { return e != nil && e.buf.Len() >= maxBatch }

// flush sends what was added. A client that leaves it unread for too long
// counts as gone.
func (e *eventWriter) flush() {
	if e.err != nil {
		return
	}
	// Deadlines are an offer of the connection; a writer of a test has none.
	e.control.SetWriteDeadline(time.Now().Add(writeTime))
	if _, e.err = e.w.Write(e.buf.Bytes()); e.err == nil {
		e.err = e.control.Flush()
	}
	e.buf.Reset()
}
