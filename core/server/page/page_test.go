package page

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func get(method, path string, header ...string) *http.Response {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	Serve(w, r)
	return w.Result()
}

// TestHeaders looks at every file that is served.
func TestHeaders(t *testing.T) {
	kinds := map[string]string{"": "text/html", ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".mjs": "text/javascript", ".svg": "image/svg+xml", ".txt": "text/plain"}
	if !Has("/") || Has("/page/") || Has("/page/index.html") || Has("/index.html") {
		t.Fatal("want the page at / alone")
	}
	for name := range files {
		t.Run(name, func(t *testing.T) {
			got := get(http.MethodGet, name)
			if got.StatusCode != http.StatusOK {
				t.Errorf("status %d, want 200", got.StatusCode)
			}
			kind, _, _ := strings.Cut(got.Header.Get("Content-Type"), ";")
			if want := kinds[path.Ext(name)]; kind != want || want == "" {
				t.Errorf("Content-Type %q, want %q", kind, want)
			}
			for field, want := range map[string]string{
				"Content-Security-Policy":    policy,
				"X-Content-Type-Options":     "nosniff",
				"Referrer-Policy":            "no-referrer",
				"Cross-Origin-Opener-Policy": "same-origin",
				"Cache-Control":              "no-cache",
			} {
				if got.Header.Get(field) != want {
					t.Errorf("%s: %q, want %q", field, got.Header.Get(field), want)
				}
			}
		})
	}
}

// TestPolicy reads the policy as a browser does.
func TestPolicy(t *testing.T) {
	directives := map[string]string{}
	for d := range strings.SplitSeq(policy, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(d), " ")
		directives[name] = value
	}
	for name, want := range map[string]string{
		"default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "img-src": "'self'", "connect-src": "'self'",
		"base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'",
		"require-trusted-types-for": "'script'", "trusted-types": "'none'",
	} {
		if directives[name] != want {
			t.Errorf("%s %s, want %s", name, directives[name], want)
		}
	}
	if len(directives) != 10 {
		t.Errorf("%d directives, want 10: %v", len(directives), directives)
	}
}

func TestETag(t *testing.T) {
	etag := get(http.MethodGet, "/").Header.Get("ETag")
	for _, tt := range []struct {
		name, method, noneMatch string
		want                    int
	}{
		{"the first time", http.MethodGet, "", http.StatusOK},
		{"kept, unchanged", http.MethodGet, etag, http.StatusNotModified},
		{"kept, of another version", http.MethodGet, `"other"`, http.StatusOK},
		{"headers alone", http.MethodHead, "", http.StatusOK},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := get(tt.method, "/", "If-None-Match", tt.noneMatch)
			if got.StatusCode != tt.want {
				t.Errorf("status %d, want %d", got.StatusCode, tt.want)
			}
		})
	}
	if other := get(http.MethodGet, "/page/js/main.js").Header.Get("ETag"); other == etag || len(etag) < 10 {
		t.Errorf("ETags %s and %s, want two of some length", etag, other)
	}
}

func TestFileOfNoType(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("load of a file without a type did not panic")
		}
	}()
	load(fstest.MapFS{"static/a.exe": {}})
}

var (
	imported  = regexp.MustCompile(`(?:from|import) '([^']+)'`)
	attribute = regexp.MustCompile(`(?:src|href)="([^"]+)"`)
	elsewhere = regexp.MustCompile(`(?i:(?:https?:|wss?:)?//[a-z0-9.-]+\.[a-z]{2,})|@import|\burl\(`)
	// forbidden are ways from text to code, which the policy refuses too.
	forbidden = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|style=|<style|\son\w+="|javascript:`)
)

// TestSelfContained has our files name no other site, inline nothing, and
// refer to nothing that is not there.
func TestSelfContained(t *testing.T) {
	var used []string
	for name, f := range files {
		if strings.HasPrefix(name, Prefix+"vendor/") {
			continue
		}
		text := strings.ReplaceAll(string(f.content), "http://www.w3.org/2000/svg", "")
		if m := elsewhere.FindString(text); m != "" {
			t.Errorf("%s names another place: %s", name, m)
		}
		if m := forbidden.FindString(text); m != "" {
			t.Errorf("%s has %q", name, m)
		}
		for _, m := range imported.FindAllStringSubmatch(text, -1) {
			used = append(used, path.Join(path.Dir(name), m[1]))
		}
		if name == "/" {
			for _, m := range attribute.FindAllStringSubmatch(text, -1) {
				if !strings.HasPrefix(m[1], "#") && !strings.HasPrefix(m[1], "/v1/") {
					used = append(used, m[1])
				}
			}
		}
	}
	for _, name := range used {
		if !Has(name) {
			t.Errorf("%s is used and not there", name)
		}
	}
	for name := range files {
		if name != "/" && path.Ext(name) != ".txt" && !slices.Contains(used, name) {
			t.Errorf("%s is there and not used", name)
		}
	}
}

// TestLicences has a licence beside what others wrote.
func TestLicences(t *testing.T) {
	text, err := fs.ReadFile(static, "static/vendor/LICENSES.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"markdown-it", "entities", "linkify-it", "mdurl", "punycode.js", "uc.micro"} {
		if !strings.Contains(string(text), "\n"+name+" (") {
			t.Errorf("LICENSES.txt has no entry for %s", name)
		}
	}
}
