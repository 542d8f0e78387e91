package contract

import "testing"

// FuzzStreams gives streams of strangers to what takes them apart: they are
// refused, never a panic.
func FuzzStreams(f *testing.F) {
	for _, s := range []string{
		"data: [DONE]\n\n",
		`data: {"id":"a","object":"o","choices":[{"index":0,"delta":{"role":"assistant","content":"x"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n",
		`data: {"choices":[{"index":-1,"delta":{"tool_calls":[{"index":7}]}}]}` + "\n\ndata: [DONE]\n\n",
		`event: message_start` + "\n" + `data: {"type":"message_start","message":{"content":[]}}` + "\n\n",
		`event: content_block_delta` + "\n" + `data: {"type":"content_block_delta","index":-1}` + "\n\n",
		": comment\r\n\r\nid: 1\r\ndata\n\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		events, err := parseEvents(body)
		if err != nil {
			return
		}
		if c, err := assemble(events); err == nil && c.well(c.Object) == nil {
			c.text()
			checkCalls(c)
			sameAnswer(c, c)
		}
		assembleClaude(events)
	})
}
