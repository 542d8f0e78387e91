package server

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
)

const testKey = "0123456789abcdef-key"

// raw sends bytes as they are and returns the status line's code and the rest.
func raw(t *testing.T, url, request string) (int, string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(conn)
	var code int
	fmt.Sscanf(strings.TrimPrefix(string(answer), "HTTP/1."), "%d %d", new(int), &code)
	return code, string(answer)
}

// TestAttacks is the matrix of requests that a web page, or a machine that is
// not this one, might get a client to send.
func TestAttacks(t *testing.T) {
	f := &fake{play: always(say("answered"))}
	url := testServer(t, f, func(o *Options) {
		o.Hosts = []string{"calla.home", "named:99"}
		o.Origins = []string{"https://allowed.example"}
	})
	port := url[strings.LastIndexByte(url, ':')+1:]
	head := func(host string, more ...string) string {
		return "GET /v1/models HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n" + strings.Join(append(more, "\r\n"), "\r\n")
	}
	origin := func(o string) string { return head("127.0.0.1:"+port, "Origin: "+o) }
	body := func(contentType string) string {
		return "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:" + port + "\r\nConnection: close\r\n" + contentType +
			fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(hello), hello)
	}
	for _, tt := range []struct {
		name, request string
		want          int
	}{
		{"loopback by address", head("127.0.0.1:" + port), 200},
		{"loopback by name", head("localhost:" + port), 200},
		{"name in capitals", head("LOCALHOST:" + port), 200},
		{"name that was allowed", head("calla.home:1234"), 200},
		{"name that was allowed, no port", head("calla.home"), 200},
		{"name that was allowed with a port", head("named:99"), 200},
		{"that name with another port", head("named:98"), 403},
		{"name that begins like localhost", head("localhost.evil.com:" + port), 403},
		{"name that ends like localhost", head("evil-localhost:" + port), 403},
		{"name that resolves to loopback", head("127.0.0.1.nip.io:" + port), 403},
		{"another name", head("evil.com:" + port), 403},
		{"below an allowed name", head("x.calla.home"), 403},
		{"trailing dot", head("localhost.:" + port), 403},
		{"no port", head("localhost"), 403},
		{"another port", head("localhost:1"), 403},
		{"another loopback address", head("127.0.0.2:" + port), 403},
		{"address in short form", head("127.1:" + port), 403},
		{"address as a number", head("2130706433:" + port), 403},
		{"IPv6 while called by IPv4", head("[::1]:" + port), 403},
		{"mapped address", head("[::ffff:127.0.0.1]:" + port), 403},
		{"all addresses", head("0.0.0.0:" + port), 403},
		{"user before the host", head("127.0.0.1:" + port + "@evil.com"), 400},
		{"empty host", head(""), 403},
		{"no host", "GET /v1/models HTTP/1.1\r\nConnection: close\r\n\r\n", 400},
		{"no host, HTTP/1.0", "GET /v1/models HTTP/1.0\r\n\r\n", 403},
		{"two hosts", head("127.0.0.1:"+port, "Host: evil.com"), 400},
		{"absolute form of another host", strings.Replace(head("127.0.0.1:"+port), "/v1", "http://evil.com/v1", 1), 403},
		{"absolute form of this host", strings.Replace(head("evil.com"), "/v1", "http://127.0.0.1:"+port+"/v1", 1), 200},
		{"forwarded host does not count", head("evil.com", "X-Forwarded-Host: localhost:"+port), 403},

		{"page that was allowed", origin("https://allowed.example"), 200},
		{"page of this server", origin("http://127.0.0.1:" + port), 200},
		{"page of this port by another name", origin("http://localhost:" + port), 403},
		{"page of another port", origin("http://127.0.0.1:1"), 403},
		{"page of this host over https", origin("https://127.0.0.1:" + port), 403},
		{"page without an origin", origin("null"), 403},
		{"page of another site", origin("https://evil.com"), 403},
		{"page below an allowed site", origin("https://x.allowed.example"), 403},
		{"allowed site without its scheme", origin("allowed.example"), 403},
		{"allowed site, other port", origin("https://allowed.example:8443"), 403},
		{"allowed site as a prefix", origin("https://allowed.example.evil.com"), 403},
		{"extension", origin("chrome-extension://abcdef"), 403},
		{"file", origin("file://"), 403},
		{"two origins", head("127.0.0.1:"+port, "Origin: https://allowed.example", "Origin: https://evil.com"), 403},

		{"form post", body("Content-Type: application/x-www-form-urlencoded\r\n"), 415},
		{"plain text post", body("Content-Type: text/plain\r\n"), 415},
		{"post without a type", body(""), 415},
		{"JSON in another charset", body("Content-Type: application/json; charset=utf-16\r\n"), 415},
		{"two types", body("Content-Type: application/json\r\nContent-Type: text/plain\r\n"), 415},
		{"compressed JSON", body("Content-Type: application/json\r\nContent-Encoding: gzip\r\n"), 415},
		{"JSON", body("Content-Type: application/json; charset=UTF-8\r\n"), 200},
		{"JSON of another site", body("Content-Type: application/json\r\nOrigin: https://evil.com\r\n"), 403},

		{"WebSocket", head("127.0.0.1:"+port, "Upgrade: websocket", "Sec-WebSocket-Key: eA==", "Sec-WebSocket-Version: 13"), 400},
		{"HTTP/2 upgrade", head("127.0.0.1:"+port, "Upgrade: h2c", "HTTP2-Settings: AA"), 400},
		{"tunnel", "CONNECT evil.com:443 HTTP/1.1\r\nHost: evil.com:443\r\nConnection: close\r\n\r\n", 403},
		{"length and chunks", "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:" + port + "\r\nContent-Type: application/json\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n", 400},
		{"two lengths", "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:" + port + "\r\nContent-Type: application/json\r\nContent-Length: 5\r\nContent-Length: 6\r\nConnection: close\r\n\r\n{}", 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, answer := raw(t, url, tt.request)
			if code != tt.want {
				t.Fatalf("status %d, want %d: %s", code, tt.want, answer)
			}
			if code == 403 && (strings.Contains(answer, "Access-Control") || !strings.Contains(answer, `{"error":{`)) {
				t.Errorf("refusal lets pages read it, or has no error object: %s", answer)
			}
			if strings.Contains(answer, "Access-Control-Allow-Origin: *") {
				t.Error("all origins may read this")
			}
		})
	}
}

func TestPreflight(t *testing.T) {
	url := testServer(t, &fake{}, func(o *Options) { o.Origins = []string{"https://allowed.example/"}; o.Key = testKey })
	ask := func(origin string) reply {
		r, _ := http.NewRequest(http.MethodOptions, url+"/v1/chat/completions", nil)
		r.Header.Set("Origin", origin)
		r.Header.Set("Access-Control-Request-Method", "POST")
		r.Header.Set("Access-Control-Request-Headers", "authorization,content-type,x-stainless-os")
		r.Header.Set("Access-Control-Request-Private-Network", "true")
		return do(t, r)
	}
	r := ask("https://allowed.example")
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin":          "https://allowed.example",
		"Access-Control-Allow-Methods":         "GET, POST",
		"Access-Control-Allow-Headers":         "authorization,content-type,x-stainless-os",
		"Access-Control-Allow-Private-Network": "true",
		"Vary":                                 "Origin",
	} {
		if got := r.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if r.status != http.StatusNoContent || r.body != "" {
		t.Errorf("preflight without a key, as browsers send it: %d %q", r.status, r.body)
	}
	if r := ask("https://evil.com"); r.status != 403 || r.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("preflight of another page: %d %v", r.status, r.header)
	}
}

func TestKey(t *testing.T) {
	f := &fake{play: always(say("x"))}
	closed := testServer(t, f, func(o *Options) { o.Key = testKey })
	open := testServer(t, f, func(o *Options) { o.Key = testKey; o.OpenModels = true })
	for _, tt := range []struct {
		name, method, url, header, value string
		want                             int
	}{
		{"bearer", "GET", closed + "/v1/models", "Authorization", "Bearer " + testKey, 200},
		{"bearer in small letters", "GET", closed + "/v1/models", "Authorization", "bearer " + testKey, 200},
		{"x-api-key", "GET", closed + "/v1/models", "X-Api-Key", testKey, 200},
		{"none", "GET", closed + "/v1/models", "", "", 401},
		{"another", "GET", closed + "/v1/models", "Authorization", "Bearer wrong", 401},
		{"part of it", "GET", closed + "/v1/models", "Authorization", "Bearer " + testKey[:10], 401},
		{"more than it", "GET", closed + "/v1/models", "Authorization", "Bearer " + testKey + "x", 401},
		{"empty", "GET", closed + "/v1/models", "Authorization", "Bearer ", 401},
		{"basic", "GET", closed + "/v1/models", "Authorization", "Basic " + testKey, 401},
		{"in the URL", "GET", closed + "/v1/models?api_key=" + testKey, "", "", 401},
		{"unknown path", "GET", closed + "/nothing", "", "", 401},
		{"health needs none", "GET", closed + "/health", "", "", 200},
		{"what only begins like health does", "GET", closed + "/healthy", "", "", 401},
		{"models, where they are open", "GET", open + "/v1/models", "", "", 200},
		{"a model, where they are open", "GET", open + "/v1/models/served", "", "", 200},
		{"the rest, where models are open", "POST", open + "/v1/chat/completions", "", "", 401},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, _ := http.NewRequest(tt.method, tt.url, nil)
			if tt.header != "" {
				r.Header.Set(tt.header, tt.value)
			}
			got := do(t, r)
			if got.status != tt.want {
				t.Fatalf("status %d, want %d: %s", got.status, tt.want, got.body)
			}
			if got.status == 401 && (got.fault(t).Type != "authentication_error" || got.header.Get("WWW-Authenticate") == "" || strings.Contains(got.body, testKey)) {
				t.Errorf("refusal %v %s", got.header, got.body)
			}
		})
	}
}

func TestKeyIsNotAskedForWithoutOne(t *testing.T) {
	r, _ := http.NewRequest("GET", testServer(t, &fake{})+"/v1/models", nil)
	r.Header.Set("Authorization", "Bearer what SDKs send when they have none")
	if got := do(t, r); got.status != 200 {
		t.Errorf("status %d", got.status)
	}
}

func TestOversized(t *testing.T) {
	url := testServer(t, &fake{play: always(say("x"))}) + "/v1/chat/completions"
	big := helloWith(`"user":"` + strings.Repeat("a", maxBody) + `"`)
	if r := post(t, url, big); r.status != 413 || r.fault(t).Code != "request_too_large" {
		t.Errorf("with its length: %d %s", r.status, r.body)
	}
	r, _ := http.NewRequest("POST", url, struct{ io.Reader }{strings.NewReader(big)}) // in chunks
	r.Header.Set("Content-Type", "application/json")
	if got := do(t, r); got.status != 413 || got.fault(t).Code != "request_too_large" {
		t.Errorf("in chunks: %d %s", got.status, got.body)
	}
	if r := post(t, url, hello); r.status != 200 {
		t.Errorf("afterwards: %d %s", r.status, r.body)
	}
}

func TestAllowsHostByFamily(t *testing.T) {
	for _, tt := range []struct {
		host, local string
		want        bool
	}{
		{"[::1]:80", "[::1]:80", true},
		{"[::1]", "[::1]:80", true},
		{"localhost", "[::1]:80", true},
		{"[0:0:0:0:0:0:0:1]:80", "[::1]:80", true},
		{"192.168.1.5:80", "192.168.1.5:80", true},
		{"localhost:80", "192.168.1.5:80", false},
		{"192.168.1.6:80", "192.168.1.5:80", false},
	} {
		local := netip.MustParseAddrPort(tt.local)
		if got := (guard{}).allowsHost(tt.host, local); got != tt.want {
			t.Errorf("host %s at %s: %t, want %t", tt.host, tt.local, got, tt.want)
		}
	}
}
