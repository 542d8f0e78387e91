package contract

import (
	"fmt"
	"net/http"
	"strings"
)

// pathChecks ask for what is not there, or in the wrong way.
func pathChecks() []check {
	var all []check
	for _, path := range []string{"/v1/nothing", "/nothing", "/v1", "/v1/chat/completions/", "/v1//models", "/v1/../v1/models"} {
		all = append(all, check{"paths", "GET " + path, func(s *session) error {
			a, err := s.raw("GET " + path + " HTTP/1.1\r\nHost: HOST\r\nKEY\r\nConnection: close\r\n\r\n")
			if err != nil {
				return err
			}
			return refusal{status: 404}.matches(a, path)
		}})
	}
	for _, path := range []string{"/v1/embeddings", "/v1/audio/speech", "/v1/images/generations", "/v1/moderations"} {
		all = append(all, check{"paths", "POST " + path, func(s *session) error {
			a, err := s.post(path, `{}`)
			if err != nil {
				return err
			}
			if a.status != 404 {
				return skipped("the server has " + path)
			}
			if err := (refusal{status: 404}).matches(a, path); err != nil {
				return err
			}
			if !strings.Contains(string(a.body), chatPath) {
				return a.wrong("want a message that says what there is")
			}
			return nil
		}})
	}
	for _, l := range []struct{ method, path, allow string }{
		{"GET", chatPath, "POST"}, {"PUT", chatPath, "POST"}, {"DELETE", "/v1/models", "GET"}, {"POST", "/v1/models", "GET"},
	} {
		all = append(all, check{"paths", l.method + " " + l.path, func(s *session) error {
			a, err := s.send(l.method, l.path, "", nil)
			if err != nil {
				return err
			}
			if err := (refusal{status: 405}).matches(a, l.path); err != nil {
				return err
			}
			if !strings.Contains(a.header.Get("Allow"), l.allow) {
				return a.wrong("want the header Allow with " + l.allow)
			}
			return nil
		}})
	}
	return all
}

// guardChecks are what a web page, or a machine that is not this one, might
// make a client send. They need a server that nobody told to allow more.
func guardChecks() []check {
	const get = "GET /v1/models HTTP/1.1\r\n"
	end := "KEY\r\nConnection: close\r\n\r\n"
	post := func(headers string) string {
		return "POST " + chatPath + " HTTP/1.1\r\nHost: HOST\r\n" + headers + "Content-Length: 2\r\n" + end + "{}"
	}
	var all []check
	for _, l := range []struct {
		name, request string
		want          string // of the status: its digits, or several
	}{
		{"a Host that begins like localhost", get + "Host: localhost.evil.example:80\r\n" + end, "403"},
		{"a Host that resolves to loopback", get + "Host: 127.0.0.1.nip.io\r\n" + end, "403"},
		{"the Host of another site", get + "Host: evil.example\r\n" + end, "403"},
		{"the right Host with another port", get + "Host: localhost:1\r\n" + end, "403"},
		{"an empty Host", get + "Host:\r\n" + end, "400 403"},
		{"no Host", get + end, "400"},
		{"no Host, HTTP/1.0", "GET /v1/models HTTP/1.0\r\n" + end, "400 403"},
		{"two Hosts", get + "Host: HOST\r\nHost: evil.example\r\n" + end, "400"},
		{"the absolute form of another site", "GET http://evil.example/v1/models HTTP/1.1\r\nHost: HOST\r\n" + end, "403"},
		{"a forwarded Host", get + "Host: evil.example\r\nX-Forwarded-Host: HOST\r\n" + end, "403"},
		{"a page of another site", get + "Host: HOST\r\nOrigin: https://evil.example\r\n" + end, "403"},
		{"a page without an origin", get + "Host: HOST\r\nOrigin: null\r\n" + end, "403"},
		{"a page of another port", get + "Host: HOST\r\nOrigin: http://127.0.0.1:1\r\n" + end, "403"},
		{"a preflight of another site", "OPTIONS " + chatPath + " HTTP/1.1\r\nHost: HOST\r\nOrigin: https://evil.example\r\nAccess-Control-Request-Method: POST\r\n" + end, "403"},
		{"a form", post("Content-Type: application/x-www-form-urlencoded\r\n"), "415"},
		{"plain text", post("Content-Type: text/plain\r\n"), "415"},
		{"no content type", post(""), "415"},
		{"JSON in another charset", post("Content-Type: application/json; charset=utf-16\r\n"), "415"},
		{"a compressed body", post("Content-Type: application/json\r\nContent-Encoding: gzip\r\n"), "415"},
		{"an upgrade to WebSocket", get + "Host: HOST\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n" + end, "400 426"},
		{"headers of 1 MB", get + "Host: HOST\r\nX-Long: " + strings.Repeat("a", 1<<20) + "\r\n" + end, "431"},
		{"length and chunks", "POST " + chatPath + " HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n" + end + "0\r\n\r\n", "400"},
		{"two lengths", "POST " + chatPath + " HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\nContent-Length: 5\r\nContent-Length: 6\r\n" + end + "{}", "400"},
	} {
		all = append(all, check{"guard", l.name, func(s *session) error {
			a, err := s.raw(l.request)
			if err != nil {
				return err
			}
			if !strings.Contains(l.want, fmt.Sprint(a.status)) {
				return a.wrong("want " + l.want)
			}
			return noWildcard(a)
		}})
	}
	return append(all, check{"guard", "no page may read the answers", func(s *session) error {
		a, err := s.get("/v1/models")
		if err != nil {
			return err
		}
		return noWildcard(a)
	}})
}

func noWildcard(a *answer) error {
	if got := a.header.Get("Access-Control-Allow-Origin"); got != "" {
		return fmt.Errorf("Access-Control-Allow-Origin: %s, want none", got)
	}
	return nil
}

func keyChecks() []check {
	var all []check
	for _, l := range []struct {
		name   string
		header func(key string) http.Header
		want   int
	}{
		{"no key", func(string) http.Header { return http.Header{} }, 401},
		{"another key", func(string) http.Header { return http.Header{"Authorization": {"Bearer wrong"}} }, 401},
		{"the beginning of the key", func(k string) http.Header { return http.Header{"Authorization": {"Bearer " + k[:len(k)/2]}} }, 401},
		{"the key as basic authorisation", func(k string) http.Header { return http.Header{"Authorization": {"Basic " + k}} }, 401},
		{"the key as bearer", func(k string) http.Header { return http.Header{"Authorization": {"Bearer " + k}} }, 200},
		{"the key as x-api-key", func(k string) http.Header { return http.Header{"X-Api-Key": {k}} }, 200},
	} {
		all = append(all, check{"key", l.name, func(s *session) error {
			if s.key == "" {
				return skipped("no key was given")
			}
			header := l.header(s.key)
			header.Set("Content-Type", "application/json")
			one := *s
			one.key = ""
			a, err := one.send(http.MethodPost, chatPath, ask(`"max_tokens":1`), header)
			if err != nil {
				return err
			}
			if l.want != 200 {
				return refusal{status: l.want}.matches(a, chatPath)
			}
			if a.status != l.want {
				return a.wrong("want 200")
			}
			return nil
		}})
	}
	return all
}
