package server

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hasIPv6 reports whether this machine has an IPv6 loopback.
func hasIPv6() bool {
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		return false
	}
	l.Close()
	return true
}

func closeAll(ls []net.Listener) {
	for _, l := range ls {
		l.Close()
	}
}

func portOfListener(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

func TestListenBothLoopbacks(t *testing.T) {
	for _, host := range []string{"", "localhost", "LocalHost"} {
		ls, err := Listen(host, 0)
		if err != nil {
			t.Fatal(err)
		}
		want := 1
		if hasIPv6() {
			want = 2
		}
		if len(ls) != want {
			t.Errorf("host %q: %d listeners, want %d", host, len(ls), want)
		}
		for _, l := range ls {
			a := l.Addr().(*net.TCPAddr)
			if !a.IP.IsLoopback() || a.Port != portOfListener(ls[0]) {
				t.Errorf("host %q: listens at %v", host, a)
			}
		}
		closeAll(ls)
	}
}

// TestBothLoopbacksAnswer calls by the addresses and by the name.
func TestBothLoopbacksAnswer(t *testing.T) {
	ls, err := Listen("localhost", 0)
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{status: EngineStatus{State: StateReady}}
	s := &http.Server{Handler: New(f.options())}
	defer s.Close()
	for _, l := range ls {
		go s.Serve(l)
		if r := get(t, "http://"+l.Addr().String()+"/v1/models"); r.status != 200 {
			t.Errorf("%v: status %d: %s", l.Addr(), r.status, r.body)
		}
	}
	_, port, _ := net.SplitHostPort(ls[0].Addr().String())
	if r := get(t, "http://localhost:"+port+"/v1/models"); r.status != 200 {
		t.Errorf("localhost: status %d: %s", r.status, r.body)
	}
}

// TestBusyPort takes a port by programs of three kinds, at either family.
func TestBusyPort(t *testing.T) {
	f := &fake{status: EngineStatus{State: StateBusy}}
	for _, tt := range []struct {
		name   string
		h      http.Handler // nil: silent
		holder Holder
		want   string
	}{
		{"another Calla", New(f.options()), HolderCalla, "another Calla (version 1.2.3, busy)"},
		{"an HTTP server", http.NotFoundHandler(), HolderHTTP, "an HTTP server that is not Calla"},
		{"a server that sends elsewhere", http.RedirectHandler("http://127.0.0.1:1/", http.StatusFound), HolderHTTP, "an HTTP server that is not Calla"},
		{"a silent listener", nil, HolderSilent, "does not speak HTTP"},
	} {
		for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
			t.Run(tt.name+" at "+at, func(t *testing.T) {
				l, err := net.Listen("tcp", at)
				if err != nil {
					t.Skip("no such address here")
				}
				defer l.Close()
				if tt.h != nil {
					s := httptest.NewUnstartedServer(tt.h)
					s.Listener.Close()
					s.Listener = l
					s.Start()
					defer s.Close()
				}
				ls, err := Listen("localhost", portOfListener(l))
				closeAll(ls)
				var busy *BusyError
				if !errors.As(err, &busy) || busy.Holder != tt.holder || !strings.Contains(err.Error(), tt.want) {
					t.Fatalf("Listen: %v, want %q", err, tt.want)
				}
				if busy.PID != 0 && busy.PID != os.Getpid() {
					t.Errorf("process %d, want %d or none", busy.PID, os.Getpid())
				}
				other, err := net.Listen("tcp", "127.0.0.1:0") // the machine has not lost what it had
				if err != nil {
					t.Fatal(err)
				}
				other.Close()
			})
		}
	}
}

// TestBusyOnOneFamily leaves nothing behind at the family that was free.
func TestBusyOnOneFamily(t *testing.T) {
	if !hasIPv6() {
		t.Skip("one family only")
	}
	v4, err := net.Listen("tcp4", "127.0.0.1:0") // a port that is free in both
	if err != nil {
		t.Fatal(err)
	}
	port := portOfListener(v4)
	l, err := net.ListenTCP("tcp6", &net.TCPAddr{IP: net.IPv6loopback, Port: port})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	v4.Close()
	if ls, err := Listen("localhost", port); err == nil {
		closeAll(ls)
		t.Fatal("listened beside another")
	}
	v4, err = net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		t.Fatalf("the other family is still taken: %v", err)
	}
	v4.Close()
}

func TestBusyForAllAddresses(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ls, err := Listen("0.0.0.0", portOfListener(l))
	closeAll(ls)
	var busy *BusyError
	if !errors.As(err, &busy) || busy.Holder != HolderSilent {
		t.Errorf("Listen: %v", err)
	}
}

func TestListenRefuses(t *testing.T) {
	for _, tt := range []struct {
		host string
		port int
		want string
	}{
		{"example.org", 0, "want localhost or an IP address"},
		{"127.0.0.1:80", 0, "want localhost or an IP address"},
		{"localhost", 65536, "want 0–65535"},
		{"localhost", -1, "want 0–65535"},
		{"192.0.2.1", 0, "listen"}, // an address of nobody's
	} {
		ls, err := Listen(tt.host, tt.port)
		closeAll(ls)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Listen(%q, %d): %v, want %q", tt.host, tt.port, err, tt.want)
		}
	}
}

func TestCheckBind(t *testing.T) {
	for _, tt := range []struct {
		host, key string
		ok        bool
	}{
		{"", "", true},
		{"localhost", "", true},
		{"127.0.0.1", "", true},
		{"127.5.5.5", "", true},
		{"::1", "", true},
		{"[::1]", "", true},
		{"::ffff:127.0.0.1", "", true},
		{"0.0.0.0", "", false},
		{"::", "", false},
		{"192.168.1.5", "", false},
		{"fe80::1", "", false},
		{"0.0.0.0", testKey, true},
		{"example.org", testKey, false},
	} {
		if err := CheckBind(tt.host, tt.key); (err == nil) != tt.ok {
			t.Errorf("CheckBind(%q, %q) = %v", tt.host, tt.key, err)
		}
	}
}

func TestReadKey(t *testing.T) {
	for _, tt := range []struct {
		name, content string
		mode          os.FileMode
		want          string // of the error; "" for none
	}{
		{"as it should be", testKey + "\n", 0o600, ""},
		{"read-only", testKey, 0o400, ""},
		{"readable by the group", testKey, 0o640, "mode 0640, want 0600"},
		{"readable by all", testKey, 0o604, "mode 0604"},
		{"writable by others", testKey, 0o602, "mode 0602"},
		{"too short", "short", 0o600, "5 bytes"},
		{"empty", "", 0o600, "0 bytes"},
		{"too long", strings.Repeat("k", maxKey+1), 0o600, "want 16–1024"},
		{"two lines", testKey + "\n" + testKey, 0o600, "blanks"},
		{"beyond ASCII", testKey + "é", 0o600, "ASCII"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(path, []byte(tt.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, tt.mode); err != nil {
				t.Fatal(err)
			}
			key, err := ReadKey(path)
			switch {
			case tt.want == "" && (err != nil || key != testKey):
				t.Errorf("ReadKey = %q, %v", key, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("ReadKey: %v, want %q", err, tt.want)
			case err != nil && strings.Contains(err.Error(), testKey):
				t.Errorf("the error tells the key: %v", err)
			}
		})
	}
	if _, err := ReadKey(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := ReadKey(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
