package server

import (
	"net/http"
	"strings"
	"testing"
)

// TestPage has the page be open to who may ask at all, with a key or without,
// and to nobody else.
func TestPage(t *testing.T) {
	url := testServer(t, &fake{}, func(o *Options) { o.Key = testKey })
	for _, tt := range []struct {
		name, path, host string
		want             int
	}{
		{"the page", "/", "", 200},
		{"a module of it", "/page/js/main.js", "", 200},
		{"a file that is not there", "/page/none.js", "", 401},
		{"the API beside it", "/v1/status", "", 401},
		{"the page by a name of others", "/", "evil.example", 403},
		{"a module by a name of others", "/page/js/main.js", "evil.example", 403},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, _ := http.NewRequest(http.MethodGet, url+tt.path, nil)
			r.Host = tt.host
			got := do(t, r)
			if got.status != tt.want {
				t.Fatalf("GET %s: status %d, want %d: %.200s", tt.path, got.status, tt.want, got.body)
			}
			if html := strings.Contains(got.header.Get("Content-Security-Policy"), "default-src 'none'"); html != (tt.want == 200) {
				t.Errorf("GET %s: Content-Security-Policy %q", tt.path, got.header.Get("Content-Security-Policy"))
			}
		})
	}
}
