package bench

import (
	"context"
	"time"
)

// Reader is a device that can say how fast it reads memory: Read returns a
// number that depends on every byte.
type Reader interface{ Read(b []byte) uint32 }

// The memory that is read to measure the bandwidth, far more than caches hold,
// and how often; the best counts, since what disturbs a read only slows it.
const (
	bandwidthBytes = 512 << 20
	bandwidthReads = 9
)

// Bandwidth returns the bytes a second that a device reads with all its threads,
// or why that can't be said: reads that the machine held back do not count. It
// takes memory of its own: look at the process's peak before.
func Bandwidth(ctx context.Context, d Reader, w *Watch) (best float64, why string) {
	const page = 4096
	memory := make([]byte, bandwidthBytes)
	for i := 0; i < len(memory); i += page {
		memory[i] = byte(i / page) // the page exists, and is no copy of another
	}
	for range bandwidthReads {
		if ctx.Err() != nil {
			return 0, "it was stopped"
		}
		end, start := w.begin(), time.Now()
		d.Read(memory)
		took := time.Since(start)
		if disturbed := end(); disturbed != "" {
			why = disturbed
			continue
		}
		best = max(best, float64(len(memory))/took.Seconds())
	}
	if best > 0 {
		why = ""
	}
	return best, why
}
