package bench

import (
	"fmt"
	"strconv"
	"strings"
)

// slowMac says what holds a Mac back, by what pmset -g therm and pmset -g print,
// and what to do about it, or nothing.
func slowMac(therm, settings string) string {
	for line := range strings.Lines(therm) {
		name, value, _ := strings.Cut(line, "=")
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if err != nil {
			continue
		}
		switch name = strings.TrimSpace(name); {
		case (name == "CPU_Speed_Limit" || name == "CPU_Scheduler_Limit") && n < 100:
			return fmt.Sprintf("the Mac runs at %d %% for heat: let it cool", n)
		case (name == "Thermal_Level" || name == "Thermal Warning Level" || name == "Performance Warning Level") && n > 0:
			return "the Mac warns of heat: let it cool"
		}
	}
	for line := range strings.Lines(settings) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "lowpowermode" && f[1] == "1" {
			return "the Mac is in low-power mode: turn it off in the settings of the battery"
		}
	}
	return ""
}
