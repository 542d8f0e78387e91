package server

import (
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"strings"
)

// The shortest and longest keys. A short one can be guessed.
const (
	minKey = 16
	maxKey = 1024
)

// ReadKey returns the key in a file, white space around it cut off. The file
// must be readable and writable by nobody but its owner.
func ReadKey(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("server: key file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("server: key file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("server: key file %s is no regular file", path)
	}
	if mode := info.Mode().Perm(); !ownerOnly(mode) {
		return "", fmt.Errorf("server: key file %s has mode %04o, want 0600: its owner alone may read it", path, mode)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKey+2))
	if err != nil {
		return "", fmt.Errorf("server: key file: %w", err)
	}
	key := strings.TrimSpace(string(data))
	if err := checkKey(key); err != nil {
		return "", fmt.Errorf("server: key file %s: %w", path, err)
	}
	return key, nil
}

func checkKey(key string) error {
	if n := len(key); n < minKey || n > maxKey {
		return fmt.Errorf("a key of %d bytes, want %d–%d", n, minKey, maxKey)
	}
	for _, c := range []byte(key) {
		if c <= ' ' || c > '~' {
			return fmt.Errorf("a key with blanks or characters beyond ASCII, which a header can't carry")
		}
	}
	return nil
}

func ownerOnly(mode fs.FileMode) bool { return mode&0o077 == 0 }

// CheckBind refuses to open a server without a key to other machines.
func CheckBind(host, key string) error {
	addrs, err := addresses(host)
	if err != nil {
		return err
	}
	for _, a := range addrs {
		if !a.IsLoopback() && key == "" {
			return fmt.Errorf("server: host %s is reached from other machines, which needs a key", host)
		}
	}
	return nil
}

// addresses returns the addresses that a host setting means: those of both
// loopback families where it is localhost or nothing.
func addresses(host string) ([]netip.Addr, error) {
	if host == "" || strings.EqualFold(host, "localhost") {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	}
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	if err != nil {
		return nil, fmt.Errorf("server: host %q, want localhost or an IP address", host)
	}
	return []netip.Addr{a.Unmap()}, nil
}
