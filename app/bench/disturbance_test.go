package bench

import (
	"strings"
	"testing"
	"time"
)

func TestJudge(t *testing.T) {
	const s = time.Second
	none := counters{waited: unknown, throttled: unknown, stolen: unknown, hot: unknown, cpu: unknown}
	with := func(change func(*counters)) counters {
		c := none
		change(&c)
		return c
	}
	for _, tt := range []struct {
		name          string
		threads       int
		before, after counters
		want          string // part of it
	}{
		{"nothing is known", 2, none, none, ""},
		{"a quiet machine", 2, counters{}, counters{cpu: 19 * s, waited: s / 10}, ""},
		{"threads waited, just not too long", 2, counters{}, counters{cpu: 10 * s, waited: 2 * s}, ""},
		{"threads waited", 2, counters{}, counters{cpu: 10 * s, waited: 2*s + s/10}, "waited for a core for more than 10 %"},
		{"threads waited, and another device computed", 0, counters{}, counters{cpu: s, waited: 9 * s}, ""},
		{"over the quota", 0, counters{}, counters{throttled: 1}, "cpu.max"},
		{"over the quota before", 2, counters{throttled: s}, counters{cpu: 20 * s, throttled: s}, ""},
		{"heat", 0, counters{hot: 4}, counters{hot: 5}, "heat"},
		{"heat before", 0, counters{hot: 5}, counters{hot: 5}, ""},
		{"another machine", 2, counters{}, counters{cpu: 20 * s, stolen: 3 * s}, "hypervisor"},
		{"low-power mode", 0, none, with(func(c *counters) { c.slow = "turn it off" }), "turn it off"},
		{
			"threads did not run, and what they waited is not counted", 2,
			with(func(c *counters) { c.cpu = 0 }), with(func(c *counters) { c.cpu = 9 * s }), "less than 50 %",
		},
		{
			"threads ran, and what they waited is not counted", 2,
			with(func(c *counters) { c.cpu = 0 }), with(func(c *counters) { c.cpu = 11 * s }), "",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Now()
			seen := []counters{tt.before, tt.after}
			w := Watch{Threads: tt.threads, Most: 0.1,
				read: func() counters {
					c := seen[0]
					seen = seen[1:]
					return c
				},
				now: func() time.Time {
					now = now.Add(10 * s)
					return now
				}}
			got := w.begin()()
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("judge = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestSlowMac(t *testing.T) {
	const cool = "Note: No thermal warning level has been recorded\nNote: No performance warning level has been recorded\nNote: No CPU power status has been recorded\n"
	const settings = "System-wide power settings:\nCurrently in use:\n standby              1\n powernap             1\n lowpowermode         %\n sleep                1\n"
	mode := func(n string) string { return strings.Replace(settings, "%", n, 1) }
	for _, tt := range []struct {
		name, therm, settings string
		want                  string
	}{
		{"cool", cool, mode("0"), ""},
		{"pmset said nothing", "", "", ""},
		{"low-power mode", cool, mode("1"), "low-power mode"},
		{"an Intel Mac at its full speed", "CPU Power notify\n\tCPU_Scheduler_Limit \t= 100\n\tCPU_Available_CPUs \t= 8\n\tCPU_Speed_Limit \t= 100\n", mode("0"), ""},
		{"an Intel Mac held back", "\tCPU_Scheduler_Limit \t= 100\n\tCPU_Speed_Limit \t= 62\n", mode("0"), "62 %"},
		{"a thermal warning", "Thermal Warning Level = 1\n", mode("0"), "heat"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := slowMac(tt.therm, tt.settings)
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("slowMac = %q, want %q", got, tt.want)
			}
		})
	}
}
