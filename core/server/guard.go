package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"calla/core/server/page"
)

// guard decides who may ask at all. A web page on any site can make a browser
// send requests to this machine, directly or through a name of its own that it
// lets point here; so the Host must be a name of this server and the Origin,
// where a browser sends one, a page that was allowed.
type guard struct {
	hosts      []string // allowed beside loopback, lower case, with or without a port
	origins    []string // allowed, lower case
	key        [sha256.Size]byte
	keyed      bool
	openModels bool
}

func newGuard(o Options) guard {
	g := guard{keyed: o.Key != "", key: sha256.Sum256([]byte(o.Key)), openModels: o.OpenModels}
	for _, h := range o.Hosts {
		g.hosts = append(g.hosts, strings.ToLower(h))
	}
	for _, origin := range o.Origins {
		g.origins = append(g.origins, strings.ToLower(strings.TrimSuffix(origin, "/")))
	}
	return g
}

// guarded lets pass what the guard allows and answers the rest, preflights
// among it.
func (s *server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		if err := s.guard.refuses(r); err != nil {
			writeError(w, r, err)
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" {
			allowOrigin(w.Header(), origin)
			if isPreflight(r) {
				preflight(w, r)
				return
			}
		}
		if !s.guard.knows(r) {
			writeError(w, r, &apiError{
				status: http.StatusUnauthorized, kind: kindAuth, code: "invalid_api_key",
				message: "a key is needed, as Authorization: Bearer or x-api-key",
			})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refuses says why a request is turned away before anyone looks at its key.
func (g guard) refuses(r *http.Request) *apiError {
	deny := func(code, message string) *apiError {
		return &apiError{status: http.StatusForbidden, kind: kindPermission, code: code, message: message}
	}
	if !g.allowsHost(r.Host, localAddr(r)) {
		return deny("host_not_allowed", "the Host header is not a name of this server; call it as localhost, 127.0.0.1 or [::1] with its port, or allow the name")
	}
	if origins := r.Header.Values("Origin"); len(origins) > 1 || len(origins) == 1 && !g.allowsOrigin(origins[0], r.Host) {
		return deny("origin_not_allowed", "web pages of this origin may not call this server; its owner can allow it")
	}
	if r.Header.Get("Upgrade") != "" {
		return &apiError{status: http.StatusBadRequest, kind: kindInvalid, code: "no_upgrade", message: "this server speaks plain HTTP only and upgrades to nothing"}
	}
	return nil
}

// localAddr returns the address at which the request arrived.
func localAddr(r *http.Request) netip.AddrPort {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return netip.AddrPort{}
	}
	ap, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
}

// allowsHost reports whether host, as a request has it, names this server,
// which was reached at the address local. An address as host is safe where it
// is the one that was reached: no site can make its own pages have it.
func (g guard) allowsHost(host string, local netip.AddrPort) bool {
	host = strings.ToLower(host)
	if host == "" {
		return false
	}
	name, port := splitHost(host)
	if slices.Contains(g.hosts, host) || slices.Contains(g.hosts, name) {
		return true
	}
	if port == "" {
		port = "80"
	}
	if !local.IsValid() || port != portOf(local) {
		return false
	}
	if name == "localhost" {
		return local.Addr().IsLoopback()
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr == local.Addr()
}

func portOf(a netip.AddrPort) string {
	_, port, _ := net.SplitHostPort(a.String())
	return port
}

// splitHost takes a Host header apart; the brackets of an IPv6 address go.
func splitHost(host string) (name, port string) {
	if name, port, err := net.SplitHostPort(host); err == nil {
		return name, port
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), ""
}

// allowsOrigin reports whether pages of origin may call. A page that this very
// server gave has its own host as origin.
func (g guard) allowsOrigin(origin, host string) bool {
	origin = strings.ToLower(origin)
	if slices.Contains(g.origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Scheme == "http" && u.Host == strings.ToLower(host) && origin == "http://"+u.Host
}

// knows reports whether the request carries the key, or needs none. Digests are
// compared, so that the time taken tells nothing, not even the key's length.
func (g guard) knows(r *http.Request) bool {
	if !g.keyed || strings.HasPrefix(r.URL.Path+"/", "/health/") || page.Has(r.URL.Path) {
		return true
	}
	if g.openModels && (r.Method == http.MethodGet || r.Method == http.MethodHead) && strings.HasPrefix(r.URL.Path+"/", "/v1/models/") {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	bearer := strings.EqualFold(scheme, "Bearer") && g.isKey(strings.TrimSpace(token))
	return g.isKey(r.Header.Get("X-Api-Key")) || bearer
}

func (g guard) isKey(token string) bool {
	digest := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(digest[:], g.key[:]) == 1
}

// allowOrigin lets the pages of one origin read the answer.
func allowOrigin(h http.Header, origin string) {
	h.Set("Access-Control-Allow-Origin", origin)
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Expose-Headers", "X-Request-Id, Retry-After")
}

func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}

// preflight tells the browser that pages of this origin, which is allowed, may
// send what they asked to send. Browsers name in it only headers that pages
// set, and SDKs set many.
func preflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, POST")
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked)
		h.Add("Vary", "Access-Control-Request-Headers")
	}
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
}
