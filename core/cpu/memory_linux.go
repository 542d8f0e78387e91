package cpu

import "os"

func machineMemory() int64 {
	b, _ := os.ReadFile("/proc/meminfo") // unreadable: not known
	return meminfoTotal(string(b))
}
