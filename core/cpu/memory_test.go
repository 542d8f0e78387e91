package cpu

import (
	"testing"
	"testing/fstest"
)

func TestControlGroupLimit(t *testing.T) {
	const total = 64 << 30
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"no control groups", nil, total},
		{"version 2 without a limit", map[string]string{
			"proc/self/cgroup":         "0::/user.slice/a.scope\n",
			"sys/fs/cgroup/memory.max": "max\n",
		}, total},
		{"version 2, the group's own", map[string]string{
			"proc/self/cgroup": "0::/user.slice/a.scope\n",
			"sys/fs/cgroup/user.slice/a.scope/memory.max": "8589934592\n",
		}, 8 << 30},
		{"version 2, a group around it is tighter", map[string]string{
			"proc/self/cgroup": "0::/user.slice/a.scope\n",
			"sys/fs/cgroup/user.slice/a.scope/memory.max": "8589934592\n",
			"sys/fs/cgroup/user.slice/memory.max":         "4294967296\n",
		}, 4 << 30},
		{"version 2 in a container, the path is the host's", map[string]string{
			"proc/self/cgroup":         "0::/docker/0123\n",
			"sys/fs/cgroup/memory.max": "2147483648\n",
		}, 2 << 30},
		{"a path out of the mount", map[string]string{
			"proc/self/cgroup":         "0::/../other\n",
			"sys/fs/cgroup/memory.max": "2147483648\n",
		}, 2 << 30},
		{"version 1", map[string]string{
			"proc/self/cgroup": "3:cpu,cpuacct:/x\n2:memory:/job\n",
			"sys/fs/cgroup/memory/job/memory.limit_in_bytes": "1073741824\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":     "9223372036854771712\n",
		}, 1 << 30},
		{"version 1 without a limit", map[string]string{
			"proc/self/cgroup":                           "2:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, total},
		{"lines that are none", map[string]string{
			"proc/self/cgroup":         "what\n\n",
			"sys/fs/cgroup/memory.max": "nonsense\n",
		}, total},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := fstest.MapFS{}
			for name, text := range tt.files {
				root[name] = &fstest.MapFile{Data: []byte(text)}
			}
			if got := controlGroupLimit(root, total); got != tt.want {
				t.Errorf("limit %d, want %d", got, tt.want)
			}
		})
	}
}

func TestMeminfoTotal(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       int64
	}{
		{"as Linux writes it", "MemTotal:       24689408 kB\nMemFree:        1 kB\n", 24689408 << 10},
		{"not the first line", "MemFree: 1 kB\nMemTotal: 2 kB\n", 2 << 10},
		{"empty", "", 0},
		{"no number", "MemTotal: many kB\n", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := meminfoTotal(tt.text); got != tt.want {
				t.Errorf("meminfoTotal(%q) = %d, want %d", tt.text, got, tt.want)
			}
		})
	}
}

func TestMemoryOfThisMachine(t *testing.T) {
	budget, total := New(Options{}).Memory()
	if total < 0 || budget > total || total > 0 && budget <= 0 {
		t.Errorf("budget %d of %d bytes", budget, total)
	}
}
