package prefs

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

func anything(string) error { return nil }

// Whole is the check of a whole number.
func Whole(least, most int) func(string) error {
	return func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < least || n > most {
			return fmt.Errorf("want a whole number, %d–%d", least, most)
		}
		return nil
	}
}

func multiple(of, least, most int) func(string) error {
	return func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < least || n > most || n%of != 0 {
			return fmt.Errorf("want a multiple of %d, %d–%d", of, least, most)
		}
		return nil
	}
}

func oneOf(words ...string) func(string) error {
	return func(s string) error {
		if !slices.Contains(words, s) {
			return fmt.Errorf("want %s", strings.Join(words, ", "))
		}
		return nil
	}
}

func yesOrNo(s string) error {
	if s != "true" && s != "false" {
		return errors.New("want true or false")
	}
	return nil
}

// Idle returns the duration of an idle-unload setting; 0 is never.
func Idle(s string) (time.Duration, error) {
	if s == "never" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, errors.New("want a duration such as 30m, or never")
	}
	return d, nil
}

func idle(s string) error {
	_, err := Idle(s)
	return err
}

func host(s string) error {
	if strings.EqualFold(s, "localhost") {
		return nil
	}
	if _, err := netip.ParseAddr(strings.Trim(s, "[]")); err != nil {
		return errors.New("want localhost or an IP address")
	}
	return nil
}

func hostName(s string) error {
	if strings.ContainsAny(s, "/ @") {
		return errors.New("want names such as calla.example.org")
	}
	return nil
}

func origin(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != s {
		return errors.New("want pages such as https://example.org, without a path")
	}
	return nil
}

func address(s string) error {
	if s == "" {
		return nil
	}
	if u, err := url.Parse(s); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("want an address that begins with https://")
	}
	return nil
}

func each(check func(string) error) func(string) error {
	return func(s string) error {
		for _, part := range Split(s) {
			if err := check(part); err != nil {
				return err
			}
		}
		return nil
	}
}

// Split returns the parts of a setting with several, none of them empty.
func Split(s string) []string {
	var out []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
