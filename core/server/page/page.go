// Package page is what people see when they open the server's address in a
// browser: a chat and the engine's status.
//
// The page is plain HTML, CSS and JavaScript, embedded as it stands in the
// folder static. It is an ordinary client of the public API: nothing is
// rendered here, and nothing of it comes from elsewhere. The policy that it is
// served under lets it load from and talk to this server alone, and forbids it
// to make HTML or script out of text, so what a model writes stays text.
package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed static
var static embed.FS

// Prefix is the path below which all files but the page itself are; that is at
// "/".
const Prefix = "/page/"

// policy is the Content-Security-Policy of all files. Trusted types, of which
// none may be made, turn every way from text to HTML into an error.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// types are those of the files by the ends of their names. The system's own
// table may have others.
var types = map[string]string{
	".css":  "text/css; charset=utf-8",
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".mjs":  "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".txt":  "text/plain; charset=utf-8",
}

// file is one file, ready to be sent.
type file struct {
	content []byte
	kind    string // Content-Type
	etag    string
}

// files has all files by their path on the server.
var files = load(static)

func load(from fs.FS) map[string]file {
	out := map[string]file{}
	err := fs.WalkDir(from, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		kind, ok := types[path.Ext(name)]
		if !ok {
			panic("page: " + name + ": a file of a kind without a type")
		}
		digest := sha256.Sum256(content)
		out[urlPath(name)] = file{content, kind, `"` + base64.RawURLEncoding.EncodeToString(digest[:12]) + `"`}
		return nil
	})
	if err != nil {
		panic("page: read embedded files: " + err.Error())
	}
	return out
}

// urlPath returns where an embedded file is on the server.
func urlPath(name string) string {
	if name == "static/index.html" {
		return "/"
	}
	return Prefix + strings.TrimPrefix(name, "static/")
}

// Has reports whether there is a file at a path of the server.
func Has(urlPath string) bool {
	_, ok := files[urlPath]
	return ok
}

// Serve answers a request for a file that is there. Browsers keep files and ask
// each time whether they have changed, as they do with a new version.
func Serve(w http.ResponseWriter, r *http.Request) {
	f := files[r.URL.Path]
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", f.etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.content))
}
