package metal

import (
	"bytes"
	"testing"
)

func TestCopy(t *testing.T) {
	for _, n := range []int{16, 48, 256 * 8 * 16, 256*8*16 + 16, 3*256*8*16 - 32} {
		everyOrder(t, sized(n < 100, false), func(t *testing.T, r *rig) {
			from, to := r.buffer(n), r.buffer(n+copyUnit)
			for i := range n {
				from.Buffer.Bytes[i] = byte(i * 7 >> (i % 3))
			}
			want := append(bytes.Clone(from.Buffer.Bytes[:n]), to.Buffer.Bytes[n:]...)
			r.enc.Copy(from, to, n)
			r.run()
			if !bytes.Equal(to.Buffer.Bytes, want) {
				t.Errorf("%d bytes are not copied, or more than these", n)
			}
		})
	}
}
