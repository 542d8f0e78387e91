package download

import (
	"cmp"
	"net"
	"regexp"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

var scutilValue = regexp.MustCompile(`^\s*(\w+) : (.*)$`)

// parseScutil reads what scutil --proxy prints: a dictionary of settings, one of
// which is an array of the hosts that need no proxy. A proxy that a script
// chooses (ProxyAutoConfigURLString) is not known from it.
func parseScutil(text string) proxySettings {
	values, exceptions := scutilValues(text)
	c := proxySettings{
		Config:    httpproxy.Config{NoProxy: strings.Join(exceptions, ",")},
		plainFree: values["ExcludeSimpleHostnames"] == "1",
	}
	proxy := func(kind, scheme string) string {
		host, port := values[kind+"Proxy"], values[kind+"Port"]
		if values[kind+"Enable"] != "1" || host == "" {
			return ""
		}
		if port == "" || port == "0" {
			return scheme + "://" + host
		}
		return scheme + "://" + net.JoinHostPort(host, port)
	}
	socks := proxy("SOCKS", "socks5")
	c.HTTPProxy = cmp.Or(proxy("HTTP", "http"), socks)
	c.HTTPSProxy = cmp.Or(proxy("HTTPS", "http"), socks)
	return c
}

// scutilValues returns the settings of the outermost dictionary, and those hosts
// as NO_PROXY has them. Dictionaries within it are of single interfaces, and
// left out.
func scutilValues(text string) (values map[string]string, exceptions []string) {
	values = map[string]string{}
	var within []string // the names of what is open
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		m := scutilValue.FindStringSubmatch(line)
		switch {
		case line == "}" && len(within) > 0:
			within = within[:len(within)-1]
		case strings.HasSuffix(line, "> {") && m == nil:
			within = append(within, "")
		case m == nil:
		case strings.HasSuffix(line, "> {"):
			within = append(within, m[1])
		case len(within) == 1:
			values[m[1]] = m[2]
		case len(within) == 2 && within[1] == "ExceptionsList":
			exceptions = append(exceptions, noProxy(m[2]))
		}
	}
	return values, exceptions
}

// noProxy translates an exception of the Mac's, such as *.local or 169.254/16,
// to the form of NO_PROXY: .local, 169.254.0.0/16.
func noProxy(exception string) string {
	if name, ok := strings.CutPrefix(exception, "*"); ok {
		return name
	}
	if address, bits, ok := strings.Cut(exception, "/"); ok {
		for strings.Count(address, ".") < 3 && !strings.Contains(address, ":") {
			address += ".0"
		}
		return address + "/" + bits
	}
	return exception
}
