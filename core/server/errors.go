package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"calla/core/engine"
)

// apiError is a fault as a client reads it. It names fields, types and limits,
// and never repeats a value: messages end up in logs of other people's apps.
type apiError struct {
	status     int    // of HTTP
	kind       string // OpenAI's error.type
	code       string
	param      string // the field at fault, or ""
	message    string
	retryAfter int    // seconds, or 0
	allow      string // methods, for 405
	cause      error  // for the log, where it is the engine's own word
}

func (e *apiError) Error() string { return "server: " + e.code + ": " + e.message }

// The types of OpenAI's error objects.
const (
	kindInvalid    = "invalid_request_error"
	kindAuth       = "authentication_error"
	kindPermission = "permission_error"
	kindNotFound   = "not_found_error"
	kindServer     = "server_error"
)

// badField is a 400 that names a field.
func badField(code, param, format string, args ...any) *apiError {
	return &apiError{
		status: http.StatusBadRequest, kind: kindInvalid, code: code, param: param,
		message: fmt.Sprintf(format, args...),
	}
}

// The codes of faults in a field.
const (
	codeUnknown     = "unknown_parameter"
	codeMissing     = "missing_required_parameter"
	codeType        = "invalid_type"
	codeValue       = "invalid_value"
	codeUnsupported = "unsupported_parameter"
	codeUnsupValue  = "unsupported_value"
)

// statusGone is what the log says of a request whose client went away.
const statusGone = 499

// retrySoon is the Retry-After of a full queue: about what a short answer
// takes.
const retrySoon = 5

// errorOf says in the API's words what went wrong below.
func errorOf(err error) *apiError {
	var own *apiError
	var length *engine.ContextError
	var device *engine.DeviceError
	var token *engine.TokenError
	var sampling *engine.SamplingError
	fault := func(status int, code, message string) *apiError {
		return &apiError{status: status, kind: kindServer, code: code, message: message, cause: err}
	}
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &length):
		return contextLength(length)
	case errors.As(err, &token):
		return badField(codeValue, "prompt", "the prompt's token %d is not below %d", token.Position, token.Vocab)
	case errors.As(err, &sampling):
		return badField(codeValue, sampling.Param, "%s is out of range", sampling.Param)
	case errors.Is(err, engine.ErrNoPrompt):
		return badField(codeValue, "prompt", "the prompt is empty, want at least one token")
	case errors.Is(err, engine.ErrNoMemory): // before ErrQueueFull, which it is too
		e := fault(http.StatusServiceUnavailable, "out_of_memory", "this machine is out of memory; close something and try again")
		e.retryAfter = retrySoon
		return e
	case errors.Is(err, engine.ErrQueueFull):
		e := fault(http.StatusServiceUnavailable, "queue_full", "the queue is full; try again later")
		e.retryAfter = retrySoon
		return e
	case errors.Is(err, engine.ErrStopped):
		return fault(http.StatusServiceUnavailable, "stopped", "the engine is stopped")
	case errors.Is(err, engine.ErrNotANumber):
		return fault(http.StatusInternalServerError, "not_a_number", "the model's output is not a number; the request was ended and its state dropped")
	case errors.Is(err, engine.ErrStuck):
		return fault(http.StatusServiceUnavailable, "device_stuck", "the device does not answer; the server must be started again")
	case errors.As(err, &device):
		return fault(http.StatusInternalServerError, "device_error", "the device failed; the request was ended and its state dropped")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fault(statusGone, "cancelled", "the request was cancelled")
	}
	e := fault(http.StatusInternalServerError, "internal_error", "the request failed within the server")
	// Nothing is known of what such an error says, so only its type is kept.
	e.cause = fmt.Errorf("error of type %T", err)
	return e
}

// contextLength has the phrases by which clients know this error: they cut or
// compact a conversation then.
func contextLength(e *engine.ContextError) *apiError {
	if e.MaxTokens > 0 && e.Prompt < e.Limit {
		return badField("context_length_exceeded", "", "this model's maximum context length is %d tokens; the prompt has %d and the completion was to have up to %d", e.Limit, e.Prompt, e.MaxTokens)
	}
	return badField("context_length_exceeded", "", "prompt is too long: this model's maximum context length is %d tokens; the prompt has %d, which leaves no room for a completion", e.Limit, e.Prompt)
}

// body returns the error object of the API that path belongs to.
func (e *apiError) body(path string) any {
	if anthropicPath(path) {
		return anthropicError(e)
	}
	return openAIError(e)
}

type openAIErrorBody struct {
	Error openAIErrorDetail `json:"error"`
}

type openAIErrorDetail struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func openAIError(e *apiError) openAIErrorBody {
	return openAIErrorBody{openAIErrorDetail{e.message, e.kind, filled(e.param), filled(e.code)}}
}

// filled returns nil for "", which JSON shows as null.
func filled(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// writeError answers a request that failed before its headers went out.
func writeError(w http.ResponseWriter, r *http.Request, e *apiError) {
	recordOf(r).fail(e)
	if e.status == statusGone {
		return // nobody listens
	}
	if e.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.retryAfter))
	}
	if e.allow != "" {
		w.Header().Set("Allow", e.allow)
	}
	if e.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="calla"`)
	}
	writeJSON(w, e.status, e.body(r.URL.Path))
}

// writeJSON sends one JSON document.
func writeJSON(w http.ResponseWriter, status int, v any) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	b := encode(v)
	h.Set("Content-Length", strconv.Itoa(len(b)))
	// Before it writes, net/http waits for what was not read of the body.
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(bodyTime + writeTime))
	w.WriteHeader(status)
	w.Write(b) // an error means that the client has gone
}

// encode returns v as JSON on one line, with < > & as they are.
func encode(v any) []byte {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("server: encode " + fmt.Sprintf("%T", v) + ": " + err.Error())
	}
	return []byte(b.String())
}
