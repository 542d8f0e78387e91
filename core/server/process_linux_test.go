package server

import (
	"net/netip"
	"testing"
)

func TestParseProcAddr(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"0100007F:2D0F", "127.0.0.1:11535"},
		{"00000000000000000000000001000000:2D0F", "[::1]:11535"},
		{"0000000000000000FFFF00000100007F:0050", "127.0.0.1:80"},
	} {
		if got, ok := parseProcAddr(tt.in); !ok || got != netip.MustParseAddrPort(tt.want) {
			t.Errorf("%s: %v %t, want %s", tt.in, got, ok, tt.want)
		}
	}
	for _, in := range []string{"", "zz:1", "0100007F", "0100007F:zz", "01:0050"} {
		if _, ok := parseProcAddr(in); ok {
			t.Errorf("%q was taken", in)
		}
	}
}
