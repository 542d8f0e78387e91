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
	bandwidthReads = 7
)

// Bandwidth returns the bytes a second that a device reads with all its threads.
// It takes memory of its own: look at the process's peak before.
func Bandwidth(ctx context.Context, d Reader) (float64, error) {
	const page = 4096
	memory := make([]byte, bandwidthBytes)
	for i := 0; i < len(memory); i += page {
		memory[i] = byte(i / page) // the page exists, and is no copy of another
	}
	best := 0.0
	for range bandwidthReads {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		start := time.Now()
		d.Read(memory)
		best = max(best, float64(len(memory))/time.Since(start).Seconds())
	}
	return best, nil
}
