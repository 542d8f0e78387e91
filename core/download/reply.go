package download

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// ErrPage is the error of a web page that came in the place of a file, as
// networks send it that want people to log in first.
var ErrPage = errors.New("a web page came in place of the file")

// statusError is a reply that brings no file.
type statusError struct {
	code  int
	host  string
	after time.Duration // the server asked not to come back earlier
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s answered %d %s", e.host, e.code, http.StatusText(e.code))
}

// passing says whether the same request may succeed later.
func (e *statusError) passing() bool {
	switch e.code {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return e.code >= 500 && e.code != http.StatusNotImplemented && e.code != http.StatusHTTPVersionNotSupported
}

// refusal is an error of a reply that will not be better the next time.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

func refuse(format string, args ...any) error { return refusal{fmt.Errorf(format, args...)} }

// checkReply compares a reply with what was asked: f from byte off on. It
// returns the byte that the body begins with, which is off or 0.
func checkReply(r *http.Response, f File, off int64, now time.Time) (begin int64, err error) {
	switch r.StatusCode {
	case http.StatusOK, http.StatusPartialContent:
	case http.StatusRequestedRangeNotSatisfiable:
		return 0, refuse("%s has a file of another length, want %d bytes: %s", r.Request.URL.Host, f.Size, r.Header.Get("Content-Range"))
	default:
		return 0, &statusError{r.StatusCode, r.Request.URL.Host, retryAfter(r.Header.Get("Retry-After"), now)}
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return 0, refuse("%s sends it packed (%s), want the file as it is", r.Request.URL.Host, e)
	}
	if r.StatusCode == http.StatusPartialContent {
		return off, checkRange(r, f, off)
	}
	if r.ContentLength == f.Size {
		return 0, nil
	}
	if isPage(r.Header) {
		return 0, refusal{fmt.Errorf("%s: %w", r.Request.URL.Host, ErrPage)}
	}
	if r.ContentLength >= 0 {
		return 0, refuse("%s has a file of %d bytes, want %d", r.Request.URL.Host, r.ContentLength, f.Size)
	}
	return 0, nil // of unknown length; its digest decides
}

func isPage(h http.Header) bool {
	kind, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return kind == "text/html" || kind == "application/xhtml+xml"
}

var contentRange = regexp.MustCompile(`^bytes (\d+)-(\d+)/(\d+|\*)$`)

// checkRange compares the range that a server says it sends with the one asked.
func checkRange(r *http.Response, f File, off int64) error {
	text := r.Header.Get("Content-Range")
	m := contentRange.FindStringSubmatch(text)
	if m == nil {
		return refuse("%s sends the range %q, want bytes %d-…/%d", r.Request.URL.Host, text, off, f.Size)
	}
	first, err1 := strconv.ParseInt(m[1], 10, 64)
	last, err2 := strconv.ParseInt(m[2], 10, 64)
	if m[3] != "*" && m[3] != strconv.FormatInt(f.Size, 10) {
		return refuse("%s has a file of %s bytes, want %d", r.Request.URL.Host, m[3], f.Size)
	}
	if err1 != nil || err2 != nil || first != off || last < first || last >= f.Size {
		return refuse("%s sends the range %q, want bytes %d-…/%d", r.Request.URL.Host, text, off, f.Size)
	}
	return nil
}

// maxAfter bounds what a server may ask us to wait.
const maxAfter = 10 * time.Minute

// retryAfter reads a Retry-After: seconds, or a date by the server's clock.
func retryAfter(text string, now time.Time) time.Duration {
	if s, err := strconv.ParseInt(text, 10, 32); err == nil {
		return min(max(time.Duration(s)*time.Second, 0), maxAfter)
	}
	if t, err := http.ParseTime(text); err == nil {
		return min(max(t.Sub(now), 0), maxAfter)
	}
	return 0
}
