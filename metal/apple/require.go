package apple

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	oldestFamily = 7  // Apple7: the M1
	unitsFamily  = 10 // Apple10: the M5, the first with matrix units
	oldestOS     = 14
)

// require says what of a device or its system is missing.
func require(f facts) error {
	if f.Family < oldestFamily {
		return fmt.Errorf("metal: %s is of family Apple%d, want Apple%d or newer: a Mac with Apple silicon", f.Name, f.Family, oldestFamily)
	}
	if f.Unified == 0 {
		return fmt.Errorf("metal: %s has memory of its own, want one that shares the processor's", f.Name)
	}
	major, _, _ := strings.Cut(f.OS, ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldestOS {
		return fmt.Errorf("metal: macOS %s, want %d or newer", f.OS, oldestOS)
	}
	return nil
}

// matrixUnits says whether a device has matrix units, and the system what drives
// them.
func matrixUnits(f facts) bool { return f.Family >= unitsFamily && f.Metal4 != 0 }
