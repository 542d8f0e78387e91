package download

import (
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// proxySettings say which proxy a request goes through.
type proxySettings struct {
	httpproxy.Config
	plainFree bool // host names without a dot need none
}

// SystemProxy chooses the proxy of a request as the machine's people set it: by
// HTTPS_PROXY, HTTP_PROXY and NO_PROXY in the environment, and where none of
// the first two is set, by the system's own settings on a Mac. The settings are
// read once, now.
func SystemProxy() func(*http.Request) (*url.URL, error) {
	s := proxySettings{Config: *httpproxy.FromEnvironment()}
	if s.HTTPProxy == "" && s.HTTPSProxy == "" {
		if system, ok := systemSettings(); ok {
			s = system
		}
	}
	return s.choose
}

func (s proxySettings) choose(r *http.Request) (*url.URL, error) {
	if s.plainFree && !strings.ContainsAny(r.URL.Hostname(), ".:") {
		return nil, nil
	}
	return s.ProxyFunc()(r.URL)
}
