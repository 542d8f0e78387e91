package download

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// DefaultEndpoint is where files come from unless somebody names a mirror.
const DefaultEndpoint = "https://huggingface.co"

// origin is the endpoint: where the files of a manifest are asked for.
type origin struct {
	base     *url.URL
	manifest Manifest
}

func newOrigin(endpoint string, m Manifest) (origin, error) {
	if endpoint == "" {
		endpoint = DefaultEndpoint
	}
	u, err := url.Parse(strings.TrimRight(endpoint, "/"))
	if err != nil {
		return origin{}, fmt.Errorf("endpoint: %w", err)
	}
	if u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return origin{}, fmt.Errorf("endpoint %s, want an address such as %s", u.Redacted(), DefaultEndpoint)
	}
	return origin{u, m}, nil
}

// url returns the address of a file.
func (o origin) url(f File) string {
	return o.base.JoinPath(o.manifest.Repository, "resolve", o.manifest.Revision, url.PathEscape(f.Name)).String()
}

// newClient returns a client whose connections each carry one transfer.
func (o *Options) newClient(from origin) *http.Client {
	dialer := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 15 * time.Second}
	t := &http.Transport{
		Proxy:                 o.Proxy,
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   30 * time.Second,
		ResponseHeaderTimeout: o.patience.answer,
		IdleConnTimeout:       60 * time.Second,
		MaxIdleConnsPerHost:   o.Connections,
		ReadBufferSize:        64 << 10,
		// What comes packed would be unpacked in silence, and ranges are of the
		// file as it is.
		DisableCompression: true,
		// HTTP/2 would put all transfers on one connection, whose rate is what
		// several are for.
		Protocols: new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	return &http.Client{Transport: &marked{t, from.base, o.Token, o.UserAgent}, CheckRedirect: fewRedirects}
}

// fewRedirects ends a chain that leads nowhere.
func fewRedirects(_ *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return refuse("%d redirects in a row", len(via))
	}
	return nil
}

// marked adds to requests what belongs to us. It works below redirects, so the
// token reaches the endpoint alone: net/http would send it to subdomains too.
type marked struct {
	next  http.RoundTripper
	base  *url.URL
	token string
	agent string
}

func (m *marked) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Del("Authorization")
	r.Header.Set("User-Agent", m.agent)
	r.Header.Set("Accept-Encoding", "identity")
	if m.token != "" && r.URL.Scheme == m.base.Scheme && strings.EqualFold(r.URL.Host, m.base.Host) {
		r.Header.Set("Authorization", "Bearer "+m.token)
	}
	return m.next.RoundTrip(r)
}

// bare takes the address from an error of net/http: after a redirect it holds
// the key that the server signed it with.
func bare(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// permanent says whether an error will be the same the next time.
func permanent(err error) bool {
	if _, ok := errors.AsType[refusal](err); ok {
		return true
	}
	if s, ok := errors.AsType[*statusError](err); ok {
		return !s.passing()
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	_, local := errors.AsType[localError](err)
	return local || errors.Is(err, context.Canceled)
}
