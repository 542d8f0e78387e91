package download

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestCheckReply(t *testing.T) {
	const size, off = 1000, 400
	f := File{Name: "x", Size: size}
	for _, tt := range []struct {
		name   string
		status int
		length int64
		header map[string]string
		begin  int64
		want   string // part of the error, or empty
		again  bool   // whether the error may pass
	}{
		{"the range", 206, 600, map[string]string{"Content-Range": "bytes 400-999/1000"}, off, "", false},
		{"less than asked", 206, 1, map[string]string{"Content-Range": "bytes 400-400/1000"}, off, "", false},
		{"a total that is not told", 206, 600, map[string]string{"Content-Range": "bytes 400-999/*"}, off, "", false},
		{"no range told", 206, 600, nil, 0, `the range ""`, false},
		{"several ranges", 206, 600, map[string]string{"Content-Type": "multipart/byteranges; boundary=x"}, 0, `the range ""`, false},
		{"a range in other units", 206, 600, map[string]string{"Content-Range": "lines 400-999/1000"}, 0, "the range", false},
		{"another beginning", 206, 601, map[string]string{"Content-Range": "bytes 399-999/1000"}, 0, "want bytes 400", false},
		{"a range backwards", 206, 600, map[string]string{"Content-Range": "bytes 400-399/1000"}, 0, "want bytes 400", false},
		{"a range beyond the end", 206, 601, map[string]string{"Content-Range": "bytes 400-1000/1000"}, 0, "want bytes 400", false},
		{"numbers that overflow", 206, 600, map[string]string{"Content-Range": "bytes 400-99999999999999999999/1000"}, 0, "want bytes 400", false},
		{"another length", 206, 600, map[string]string{"Content-Range": "bytes 400-999/1001"}, 0, "1001 bytes, want 1000", false},
		{"the whole file", 200, 1000, nil, 0, "", false},
		{"a file of unknown length", 200, -1, nil, 0, "", false},
		{"a whole file of another length", 200, 999, nil, 0, "999 bytes, want 1000", false},
		{"an empty file", 200, 0, nil, 0, "0 bytes, want 1000", false},
		{"a page", 200, 57, map[string]string{"Content-Type": "text/html; charset=utf-8"}, 0, "a web page", false},
		{"a page of unknown length", 200, -1, map[string]string{"Content-Type": "TEXT/HTML"}, 0, "a web page", false},
		{"a file that a server calls a page", 200, 1000, map[string]string{"Content-Type": "text/html"}, 0, "", false},
		{"packed", 206, 500, map[string]string{"Content-Range": "bytes 400-899/1000", "Content-Encoding": "gzip"}, 0, "packed (gzip)", false},
		{"not packed, and said so", 200, 1000, map[string]string{"Content-Encoding": "identity"}, 0, "", false},
		{"nothing there", 204, 0, nil, 0, "204 No Content", false},
		{"not changed", 304, 0, nil, 0, "304", false},
		{"bad request", 400, 0, nil, 0, "400", false},
		{"no right", 401, 0, nil, 0, "hub.test answered 401 Unauthorized", false},
		{"not allowed", 403, 0, nil, 0, "403 Forbidden", false},
		{"not there", 404, 0, nil, 0, "404 Not Found", false},
		{"too slow", 408, 0, nil, 0, "408", true},
		{"gone", 410, 0, nil, 0, "410", false},
		{"no such range", 416, 0, map[string]string{"Content-Range": "bytes */300"}, 0, "bytes */300", false},
		{"too many", 429, 0, nil, 0, "429 Too Many Requests", true},
		{"broken", 500, 0, nil, 0, "500", true},
		{"can't ever", 501, 0, nil, 0, "501", false},
		{"bad gateway", 502, 0, nil, 0, "502", true},
		{"busy", 503, 0, nil, 0, "503", true},
		{"slow gateway", 504, 0, nil, 0, "504", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &http.Response{
				StatusCode: tt.status, ContentLength: tt.length, Header: http.Header{},
				Request: &http.Request{URL: &url.URL{Scheme: "https", Host: "hub.test"}},
			}
			for k, v := range tt.header {
				r.Header.Set(k, v)
			}
			begin, err := checkReply(r, f, off, time.Now())
			switch {
			case tt.want == "" && (err != nil || begin != tt.begin):
				t.Errorf("begins at %d, error %v, want %d", begin, err, tt.begin)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("error %v, want one with %q", err, tt.want)
			case err != nil && permanent(err) == tt.again:
				t.Errorf("error %v is permanent: %v, want %v", err, permanent(err), !tt.again)
			}
			if strings.Contains(tt.name, "a page") && tt.want != "" && !errors.Is(err, ErrPage) {
				t.Errorf("error %v, want ErrPage", err)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name, text string
		want       time.Duration
	}{
		{"nothing", "", 0},
		{"seconds", "7", 7 * time.Second},
		{"less than nothing", "-7", 0},
		{"longer than anybody waits", "86400", maxAfter},
		{"more than there are", "99999999999999999999", 0},
		{"a date", "Fri, 01 May 2026 12:00:30 GMT", 30 * time.Second},
		{"a date gone by", "Fri, 01 May 2026 11:00:00 GMT", 0},
		{"a date by a clock that is years ahead", "Fri, 01 May 2076 12:00:00 GMT", maxAfter},
		{"something else", "soon", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := retryAfter(tt.text, now); got != tt.want {
				t.Errorf("retryAfter(%q) = %v, want %v", tt.text, got, tt.want)
			}
		})
	}
}

func TestPatienceWait(t *testing.T) {
	p := patience{first: time.Second, most: time.Minute}
	for _, tt := range []struct {
		name   string
		n      int
		after  time.Duration
		chance float64
		want   time.Duration
	}{
		{"the first, at least", 1, 0, 0, 500 * time.Millisecond},
		{"the first, at most", 1, 0, 1, time.Second},
		{"the third", 3, 0, 1, 4 * time.Second},
		{"bounded", 10, 0, 1, time.Minute},
		{"bounded where shifting would overflow", 100, 0, 0, 30 * time.Second},
		{"as the server asks", 1, 20 * time.Second, 1, 20 * time.Second},
		{"longer than the server asks", 5, time.Second, 1, 16 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := p.wait(tt.n, tt.after, func() float64 { return tt.chance }); got != tt.want {
				t.Errorf("wait = %v, want %v", got, tt.want)
			}
		})
	}
}
