package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"calla/core/server/strictjson"
)

// readBody reads and checks the JSON object of a request and fills into with
// it. shape has every field that may be there.
func readBody(w http.ResponseWriter, r *http.Request, shape object, into any) *apiError {
	if err := checkContentType(r.Header); err != nil {
		return err
	}
	data, err := readAll(w, r)
	if err != nil {
		return err
	}
	if gone := holdOf(r).begin(r.Context()); gone != nil {
		return errorOf(gone)
	}
	return decode(data, shape, into)
}

func checkContentType(h http.Header) *apiError {
	refuse := func(code, message string) *apiError {
		return &apiError{status: http.StatusUnsupportedMediaType, kind: kindInvalid, code: code, message: message}
	}
	kind, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || kind != "application/json" || len(h.Values("Content-Type")) > 1 {
		return refuse("unsupported_media_type", "the Content-Type must be application/json")
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return refuse("unsupported_charset", "the charset of the body must be UTF-8")
	}
	if coding := h.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return refuse("unsupported_encoding", "the body must not be compressed")
	}
	return nil
}

// readAll reads the body, within its bounds of size and time.
func readAll(w http.ResponseWriter, r *http.Request) ([]byte, *apiError) {
	large := &apiError{
		status: http.StatusRequestEntityTooLarge, kind: kindInvalid, code: "request_too_large",
		message: fmt.Sprintf("the body is larger than %d bytes", maxBody),
	}
	if r.ContentLength > maxBody {
		return nil, large
	}
	var b bytes.Buffer
	if n := r.ContentLength; n > 0 {
		b.Grow(int(min(n, 1<<20)) + bytes.MinRead) // a promise is not worth more memory
	}
	_, err := b.ReadFrom(holdOf(r).reader(http.MaxBytesReader(w, r.Body, maxBody)))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(err, errBusy):
		return nil, &apiError{
			status: http.StatusServiceUnavailable, kind: kindServer, code: "server_busy", retryAfter: retrySoon,
			message: "too many large requests at once; try again later",
		}
	case errors.As(err, &tooLarge):
		return nil, large
	case err != nil && !errors.Is(err, io.EOF):
		return nil, &apiError{
			status: http.StatusBadRequest, kind: kindInvalid, code: "incomplete_body",
			message: "the body did not arrive whole and in time",
		}
	}
	http.NewResponseController(w).SetReadDeadline(time.Time{}) // see deadlines
	return b.Bytes(), nil
}

// deadlines gives a client the time to send its body; net/http waits for the
// rest of one that no handler read, too. Once a body is there, nothing more is
// expected and an answer may take any time. Deadlines are an offer of the
// connection; a writer of a test has none.
func deadlines(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	if r.ContentLength != 0 {
		control.SetReadDeadline(time.Now().Add(bodyTime))
	}
	control.SetWriteDeadline(time.Time{}) // the last request's
}

// decode checks a document against its shape and fills into with it. Once the
// check has passed, encoding/json has nothing left to be lenient about.
func decode(data []byte, shape object, into any) *apiError {
	v, err := strictjson.Parse(data, strictjson.Limits{Depth: maxDepth, Values: maxValues})
	var fault *strictjson.Error
	if errors.As(err, &fault) {
		return badField("invalid_json", "", "the body is not valid JSON: byte %d: %s", fault.Offset, fault.Fault)
	}
	if err := checkShape(shape, nil, v); err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		// The wire type and the table disagree.
		panic(fmt.Sprintf("server: decode into %T: the table let pass what the type cannot hold", into))
	}
	return nil
}

// compactJSON returns checked JSON without white space.
func compactJSON(raw []byte) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		panic("server: compact checked JSON: " + err.Error())
	}
	return b.Bytes()
}
