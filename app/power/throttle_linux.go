package power

import (
	"io/fs"
	"strconv"
	"strings"
	"sync"
	"time"
)

// throttling reads how often the kernel has slowed processors down for heat.
type throttling struct {
	files fs.FS // of /sys

	mu   sync.Mutex
	last int64 // -1 before the first reading
	rose time.Time
}

// hotFor is how long after it was slowed down a processor counts as hot.
const hotFor = 10 * time.Second

func newThrottling(sys fs.FS) throttling { return throttling{files: sys, last: -1} }

// state reads the counters, which only rise. Where there are none, as on ARM and
// in most virtual machines, nothing is known.
func (t *throttling) state(now time.Time) Thermal {
	counters, _ := fs.Glob(t.files, "devices/system/cpu/cpu*/thermal_throttle/*_throttle_count")
	if len(counters) == 0 {
		return Unknown
	}
	var sum int64
	for _, name := range counters {
		text, err := fs.ReadFile(t.files, name)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
			sum += n
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last >= 0 && sum > t.last {
		t.rose = now
	}
	t.last = sum
	if !t.rose.IsZero() && now.Sub(t.rose) < hotFor {
		return Serious
	}
	return Nominal
}

// lowPower reports whether the firmware's profile is one that saves energy.
func lowPower(sys fs.FS) bool {
	profile, err := fs.ReadFile(sys, "firmware/acpi/platform_profile")
	return err == nil && strings.TrimSpace(string(profile)) == "low-power"
}
