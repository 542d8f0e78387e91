package server

import (
	"net/http"

	"calla/core/server/page"
)

// showPage sends a file of the page for people. Everyone who passes the guard
// may have it without the key: it holds nothing but what asks for one.
func (s *server) showPage(w http.ResponseWriter, r *http.Request) {
	if !page.Has(r.URL.Path) {
		s.notFound(w, r)
		return
	}
	page.Serve(w, r)
}
