package server

import "strings"

// anthropicPath reports whether a path is of Anthropic's API, which has an
// error object of its own.
func anthropicPath(path string) bool {
	return path == "/v1/messages" || strings.HasPrefix(path, "/v1/messages/")
}

type anthropicErrorBody struct {
	Type  string `json:"type"`
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
}

func anthropicError(e *apiError) anthropicErrorBody {
	b := anthropicErrorBody{Type: "error"}
	b.Error.Type, b.Error.Message = anthropicKind(e.status), e.message
	return b
}

// anthropicKind returns Anthropic's error type of a status.
func anthropicKind(status int) string {
	switch status {
	case 401:
		return "authentication_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 413:
		return "request_too_large"
	case 503:
		return "overloaded_error"
	}
	if status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}
