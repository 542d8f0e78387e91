package server

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// probeTime bounds the look at who holds a port.
const probeTime = 500 * time.Millisecond

// Listen opens the listeners of a host: both loopback families where it is
// localhost or nothing, else the one address that it is. Port 0 takes a free
// one, the same for all. A machine without one of the families does with the
// other. Where a port is taken the error is a *BusyError.
func Listen(host string, port int) ([]net.Listener, error) {
	addrs, err := addresses(host)
	if err != nil {
		return nil, err
	}
	if port < 0 || port > 65535 {
		return nil, fmt.Errorf("server: port %d, want 0–65535", port)
	}
	const tries = 20 // a port that is free in one family may be taken in the other
	for range tries {
		var ls []net.Listener
		if ls, err = listenAll(addrs, uint16(port)); err == nil || port != 0 {
			return ls, err
		}
	}
	return nil, err
}

func listenAll(addrs []netip.Addr, port uint16) (ls []net.Listener, err error) {
	var missing error // of a family that this machine does not have
	for _, a := range addrs {
		l, err := listenOne(netip.AddrPortFrom(a, port))
		if err != nil && len(addrs) > 1 && noSuchFamily(err) {
			missing = err
			continue
		}
		if err != nil {
			for _, l := range ls {
				l.Close()
			}
			return nil, err
		}
		ls = append(ls, l)
		port = uint16(l.Addr().(*net.TCPAddr).Port)
	}
	if len(ls) == 0 {
		return nil, missing
	}
	return ls, nil
}

// listenOne listens at one address, if nobody does. Some systems let two
// programs listen at one port, one at all addresses and one at loopback; so the
// port is called before it is taken.
func listenOne(at netip.AddrPort) (net.Listener, error) {
	if at.Port() != 0 {
		if conn, err := net.DialTimeout("tcp", callable(at).String(), probeTime); err == nil {
			conn.Close()
			return nil, whoHolds(at)
		}
	}
	network := "tcp4"
	if at.Addr().Is6() {
		network = "tcp6"
	}
	l, err := net.Listen(network, at.String())
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, whoHolds(at)
	}
	if err != nil {
		return nil, fmt.Errorf("server: listen: %w", err)
	}
	return l, nil
}

// callable returns an address at which a listener of at can be called: the
// address to which all are bound is none.
func callable(at netip.AddrPort) netip.AddrPort {
	if !at.Addr().IsUnspecified() {
		return at
	}
	if at.Addr().Is4() {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port())
	}
	return netip.AddrPortFrom(netip.IPv6Loopback(), at.Port())
}

func noSuchFamily(err error) bool {
	return errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EPROTONOSUPPORT)
}
