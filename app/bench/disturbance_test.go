package bench

import (
	"strings"
	"testing"
	"time"

	"calla/app/power"
)

func TestJudge(t *testing.T) {
	const s = time.Second
	none := counters{waited: unknown, throttled: unknown, stolen: unknown, cpu: unknown}
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
		{"another machine", 2, counters{}, counters{cpu: 20 * s, stolen: 3 * s}, "hypervisor"},
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
				condition: func() power.Condition { return power.Condition{} },
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

// From AnyWait on nothing is said of waits, even of more than all threads' time.
func TestJudgeOfAnyWait(t *testing.T) {
	for most, silent := range map[float64]bool{0.99: false, AnyWait: true} {
		w := Watch{Threads: 2, Most: most}
		got := w.judge(counters{}, counters{waited: 50 * time.Second}, 10*time.Second)
		if (got == "") != silent {
			t.Errorf("judge = %q where %v is allowed", got, most)
		}
	}
}

func TestHindrance(t *testing.T) {
	for _, tt := range []struct {
		name string
		c    power.Condition
		want string
	}{
		{"nothing is known", power.Condition{}, ""},
		{"cool", power.Condition{Thermal: power.Nominal}, ""},
		{"fans may be heard", power.Condition{Thermal: power.Fair}, ""},
		{"hot", power.Condition{Thermal: power.Serious}, "let it cool"},
		{"very hot", power.Condition{Thermal: power.Critical, LowPower: true}, "let it cool"},
		{"saving power", power.Condition{Thermal: power.Nominal, LowPower: true}, "low-power mode"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := Watch{condition: func() power.Condition { return tt.c }, read: func() counters { return counters{} }, now: time.Now}
			got := w.begin()()
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("a run ends with %q, want %q", got, tt.want)
			}
		})
	}
}
