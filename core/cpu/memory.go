package cpu

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// controlGroupLimit returns the least of total and the memory limits that Linux
// control groups, of either version, set for this process. The file system is
// the machine's; where it has no control groups there is no limit.
func controlGroupLimit(root fs.FS, total int64) int64 {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return total
	}
	limit := total
	for line := range strings.Lines(string(groups)) {
		// hierarchy:controllers:path, with no controllers in version 2.
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		switch {
		case fields[1] == "":
			limit = least(root, limit, "sys/fs/cgroup", fields[2], "memory.max")
		case hasController(fields[1], "memory"):
			limit = least(root, limit, "sys/fs/cgroup/memory", fields[2], "memory.limit_in_bytes")
		}
	}
	return limit
}

// least looks at a group and at every group that holds it: each may limit. In a
// container the path may be the host's and not exist here; the mount's root is
// then the container's own group.
func least(root fs.FS, limit int64, mount, group, file string) int64 {
	for dir := path.Clean("/" + group); ; dir = path.Dir(dir) {
		if b, err := fs.ReadFile(root, path.Join(mount, dir, file)); err == nil {
			// "max" is no number and no limit.
			if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && (limit == 0 || n < limit) {
				limit = n
			}
		}
		if dir == "/" {
			return limit
		}
	}
}

func hasController(list, name string) bool {
	for c := range strings.SplitSeq(list, ",") {
		if c == name {
			return true
		}
	}
	return false
}

// meminfoTotal returns the bytes of MemTotal in the text of /proc/meminfo, or 0.
func meminfoTotal(text string) int64 {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return n << 10
		}
	}
	return 0
}
