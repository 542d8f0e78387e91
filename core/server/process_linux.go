package server

import (
	"bufio"
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// processAt returns the process that listens at an address, as far as /proc
// shows it: another user's is not shown.
func processAt(at netip.AddrPort) (pid int, program string) {
	inodes := listening(at)
	if len(inodes) == 0 {
		return 0, ""
	}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil || !slices.Contains(inodes, strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")) {
			continue
		}
		dir := filepath.Dir(filepath.Dir(link))
		name, _ := os.ReadFile(filepath.Join(dir, "comm"))
		pid, _ = strconv.Atoi(filepath.Base(dir))
		return pid, shortName(strings.TrimSpace(string(name)))
	}
	return 0, ""
}

// listening returns the inodes of the sockets that listen at an address, or at
// all addresses with its port.
func listening(at netip.AddrPort) (inodes []string) {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(table)
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			const local, state, inode, listen = 1, 3, 9, "0A"
			field := strings.Fields(lines.Text())
			if len(field) <= inode || field[state] != listen {
				continue
			}
			have, ok := parseProcAddr(field[local])
			if ok && have.Port() == at.Port() && (have.Addr() == at.Addr() || have.Addr().IsUnspecified() || at.Addr().IsUnspecified()) {
				inodes = append(inodes, field[inode])
			}
		}
		f.Close()
	}
	return inodes
}

// parseProcAddr reads an address as /proc/net writes it: words of four bytes in
// the machine's order, which is little-endian wherever we run, and the port.
func parseProcAddr(s string) (netip.AddrPort, bool) {
	host, port, _ := strings.Cut(s, ":")
	b, err := hex.DecodeString(host)
	p, portErr := strconv.ParseUint(port, 16, 16)
	if err != nil || portErr != nil || len(b)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(b); i += 4 {
		slices.Reverse(b[i : i+4])
	}
	a, ok := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(a.Unmap(), uint16(p)), ok
}
