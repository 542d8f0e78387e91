package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// reading is an answer for the status.
type reading struct {
	body   []byte
	hangs  bool   // by the engine's own word
	reason string // why
	err    error
}

// readTime bounds one reading.
const readTime = 2 * time.Second

// client is one of its own: no proxy, no redirect.
var client = http.Client{
	Timeout:       readTime,
	Transport:     &http.Transport{DialContext: (&net.Dialer{}).DialContext, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// readStatus asks for the status and believes it if it is the child's.
func readStatus(url, nonce, key string) reading {
	request, err := http.NewRequest(http.MethodGet, url+"/v1/status", nil)
	if err != nil {
		return reading{err: err}
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	response, err := client.Do(request)
	if err != nil {
		return reading{err: err}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	switch {
	case err != nil:
		return reading{err: err}
	case response.StatusCode != http.StatusOK:
		return reading{err: fmt.Errorf("the status is a %d", response.StatusCode)}
	}
	var s struct{ Instance, State, Reason string }
	if err := json.Unmarshal(body, &s); err != nil {
		return reading{err: err}
	}
	if s.Instance != nonce {
		return reading{err: errors.New("another program answers in its place")}
	}
	return reading{body: body, hangs: s.State == "stuck" || s.State == "failed", reason: s.Reason}
}
