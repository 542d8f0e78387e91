package crash_test

import (
	"strings"
	"testing"

	"calla/core/crash"
)

// fails panics with a secret, and has it as an argument.
//
//go:noinline
func fails(secret string) { panic(secret) }

func TestCrashTellsWhereAndNotWhat(t *testing.T) {
	const secret = "what a person wrote"
	var c *crash.Crash
	func() {
		defer func() {
			if p := recover(); p != nil {
				c = crash.Of(p)
			}
		}()
		fails(secret)
	}()
	if !strings.HasPrefix(c.Error(), "panic (string) in crash_test.fails (crash_test.go:") {
		t.Errorf("Error() = %q, want the function and line that panicked", c.Error())
	}
	if all := c.Error() + strings.Join(c.Frames, "\n"); strings.Contains(all, secret) || strings.Contains(all, "0x") {
		t.Errorf("the crash tells what was panicked with or an argument: %s", all)
	}
}
