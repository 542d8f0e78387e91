package conform

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"calla/core/tensor"
)

// arrays are the named arrays of a safetensors file that this repository
// brought: no care is taken of hostile ones.
type arrays map[string][]float32

// parseArrays reads float32 and int32 arrays; integers become float32.
func parseArrays(t testing.TB, file []byte) arrays {
	t.Helper()
	n := binary.LittleEndian.Uint64(file)
	var header map[string]struct {
		DType   string
		Offsets [2]int `json:"data_offsets"`
	}
	if err := json.Unmarshal(file[8:8+n], &header); err != nil {
		t.Fatal(err)
	}
	out := arrays{}
	for name, h := range header {
		data := file[8+n:]
		if name == "__metadata__" {
			continue
		}
		values := tensor.Float32s(tensor.F32, data[h.Offsets[0]:h.Offsets[1]])
		if h.DType == "I32" {
			for i, v := range values {
				values[i] = float32(int32(math.Float32bits(v)))
			}
		}
		out[name] = values
	}
	return out
}

// get returns an array that must be there.
func (a arrays) get(t testing.TB, name string, args ...any) []float32 {
	t.Helper()
	name = fmt.Sprintf(name, args...)
	v, ok := a[name]
	if !ok {
		t.Fatalf("no golden array %q", name)
	}
	return v
}

// bound says how far values may be from the golden ones. A zero part is not
// looked at.
type bound struct {
	abs float64 // largest difference
	rms float64 // root of mean squared difference over root of mean square
}

// check compares got with want.
func (b bound) check(t testing.TB, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d values, want %d", what, len(got), len(want))
		return
	}
	worst, rms := distance(got, want)
	// Negated, so that not-a-number fails.
	if b.abs > 0 && !(worst <= b.abs) {
		t.Errorf("%s: largest difference %.3g, want at most %.3g", what, worst, b.abs)
	}
	if b.rms > 0 && !(rms <= b.rms) {
		t.Errorf("%s: relative RMS error %.3g, want at most %.3g", what, rms, b.rms)
	}
}

// distance returns the largest difference and the relative RMS error.
func distance(got, want []float32) (worst, rms float64) {
	var diff, norm float64
	for i, w := range want {
		d := float64(got[i]) - float64(w)
		if math.Abs(d) > worst || d != d {
			worst = math.Abs(d)
		}
		diff += d * d
		norm += float64(w) * float64(w)
	}
	if norm == 0 {
		return worst, math.Sqrt(diff)
	}
	return worst, math.Sqrt(diff / norm)
}
