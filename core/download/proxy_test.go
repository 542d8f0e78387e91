package download

import (
	"net/http"
	"net/url"
	"testing"
)

// scutilText is what macOS prints for a network with a proxy for both kinds of
// address, put together from its form.
const scutilText = `<dictionary> {
  ExceptionsList : <array> {
    0 : *.local
    1 : 169.254/16
    2 : intra.test
    3 : 10.0.0.0/8
  }
  ExcludeSimpleHostnames : 1
  FTPPassive : 1
  HTTPEnable : 1
  HTTPPort : 3128
  HTTPProxy : proxy.test
  HTTPSEnable : 1
  HTTPSPort : 3129
  HTTPSProxy : secure.test
  SOCKSEnable : 0
  SOCKSProxy : socks.test
  __SCOPED__ : <dictionary> {
    en0 : <dictionary> {
      ExceptionsList : <array> {
        0 : *.local
      }
      FTPPassive : 1
      HTTPSEnable : 1
      HTTPSPort : 1
      HTTPSProxy : scoped.test
    }
  }
}
`

func TestParseScutil(t *testing.T) {
	for _, tt := range []struct {
		name, text, address string
		want                string // the proxy, or empty
	}{
		{"https", scutilText, "https://huggingface.co/x", "http://secure.test:3129"},
		{"http", scutilText, "http://mirror.test/x", "http://proxy.test:3128"},
		{"an exception", scutilText, "https://intra.test/x", ""},
		{"an exception for all names below", scutilText, "https://printer.local/x", ""},
		{"an exception for addresses, written short", scutilText, "http://169.254.7.7/x", ""},
		{"an exception for addresses", scutilText, "http://10.1.2.3/x", ""},
		{"a name without a dot", scutilText, "http://mirror/x", ""},
		{"this machine", scutilText, "http://127.0.0.1:8080/x", ""},
		{"no proxy", "<dictionary> {\n  FTPPassive : 1\n}\n", "https://huggingface.co/x", ""},
		{"a proxy that is off", "<dictionary> {\n  HTTPSEnable : 0\n  HTTPSPort : 1\n  HTTPSProxy : p.test\n}\n", "https://huggingface.co/x", ""},
		{"SOCKS alone", "<dictionary> {\n  SOCKSEnable : 1\n  SOCKSPort : 1080\n  SOCKSProxy : s.test\n}\n", "https://huggingface.co/x", "socks5://s.test:1080"},
		{"an address with colons", "<dictionary> {\n  HTTPSEnable : 1\n  HTTPSPort : 8080\n  HTTPSProxy : fd00::1\n}\n", "https://huggingface.co/x", "http://[fd00::1]:8080"},
		{"no port", "<dictionary> {\n  HTTPSEnable : 1\n  HTTPSProxy : p.test\n}\n", "https://huggingface.co/x", "http://p.test"},
		{"nothing printed", "", "https://huggingface.co/x", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u, err := url.Parse(tt.address)
			if err != nil {
				t.Fatal(err)
			}
			got, err := parseScutil(tt.text).choose(&http.Request{URL: u})
			if err != nil || got == nil && tt.want != "" || got != nil && got.String() != tt.want {
				t.Errorf("%s goes through %v (error %v), want %q", tt.address, got, err, tt.want)
			}
		})
	}
}
