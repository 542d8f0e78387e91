package metal

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"

	"calla/core/checkpoint"
	"calla/core/checkpoint/checkpointtest"
	"calla/core/tensor"
)

// randomCheckpoint returns a checkpoint of any size with random weights, which
// are made as they are read: each element is a function of its tensor and place.
// Products of values of spread 1 have spread 1.
func randomCheckpoint(t testing.TB, c checkpoint.Config) checkpoint.Source {
	t.Helper()
	dir := t.TempDir()
	if err := checkpointtest.New(c, 1).Write(dir); err != nil { // zeros, which take no space
		t.Fatal(err)
	}
	return randomSource{checkpoint.Dir(dir)}
}

type randomSource struct{ checkpoint.Source }

func (s randomSource) Open(name string) (checkpoint.File, error) {
	f, err := s.Source.Open(name)
	if err != nil || !strings.HasSuffix(name, ".safetensors") {
		return f, err
	}
	return newRandomFile(f)
}

// randomFile has the header of a file of weights, and weights of its own.
type randomFile struct {
	checkpoint.File
	tensors []randomTensor
	first   int64 // byte of the weights
	whole   func() []byte
}

// randomTensor is where a tensor lies, and how an element is made.
type randomTensor struct {
	from, to int64
	fill     func(p []byte, first uint64) // elements of size bytes, from number first on
	size     int64
}

func newRandomFile(f checkpoint.File) (*randomFile, error) {
	var head [8]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return nil, err
	}
	text := make([]byte, binary.LittleEndian.Uint64(head[:]))
	if _, err := f.ReadAt(text, 8); err != nil {
		return nil, err
	}
	var header map[string]struct {
		DType   string   `json:"dtype"`
		Shape   []int64  `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}
	if err := json.Unmarshal(text, &header); err != nil {
		return nil, err
	}
	delete(header, "__metadata__")
	data := int64(8 + len(text))
	r := &randomFile{File: f, first: data}
	for name, x := range header {
		t := randomTensor{from: data + x.Offsets[0], to: data + x.Offsets[1], size: 2}
		if x.DType == "U32" {
			t.size = 4
		}
		t.fill = filler(name, x.Shape)
		r.tensors = append(r.tensors, t)
	}
	r.whole = sync.OnceValue(r.all)
	return r, nil
}

// ReadAt implements checkpoint.File, of whole elements.
func (r *randomFile) ReadAt(p []byte, off int64) (n int, err error) {
	if n = len(p); off < r.first || off+int64(n) > r.Size() {
		n, err = r.File.ReadAt(p, off)
	}
	for _, t := range r.tensors {
		lo, hi := max(t.from, off), min(t.to, off+int64(n))
		if lo < hi {
			t.fill(p[lo-off:hi-off], uint64((lo-t.from)/t.size))
		}
	}
	return n, err
}

// Bytes implements checkpoint.File.
func (r *randomFile) Bytes() []byte { return r.whole() }

func (r *randomFile) all() []byte {
	b := make([]byte, r.Size())
	r.File.ReadAt(b[:r.first], 0)
	const piece = 1 << 20
	var wg sync.WaitGroup
	free := make(chan bool, runtime.GOMAXPROCS(0))
	for _, t := range r.tensors {
		for at := t.from; at < t.to; at += piece {
			free <- true
			wg.Go(func() {
				t.fill(b[at:min(at+piece, t.to)], uint64((at-t.from)/t.size))
				<-free
			})
		}
	}
	wg.Wait()
	return b
}

// filler returns how elements of a tensor are made.
func filler(name string, shape []int64) func(p []byte, first uint64) {
	seed := uint64(1)
	for _, c := range strings.TrimSuffix(strings.TrimSuffix(name, ".biases"), ".scales") {
		seed = mix(seed*31 + uint64(c))
	}
	if strings.HasSuffix(name, ".weight") && len(shape) > 1 && !strings.Contains(name, "conv1d") {
		return func(p []byte, first uint64) {
			for i := 0; i+4 <= len(p); i += 4 {
				binary.LittleEndian.PutUint32(p[i:], uint32(mix(seed+first+uint64(i/4))))
			}
		}
	}
	value := valueOf(name, float64(shape[len(shape)-1]*groupColumns))
	return func(p []byte, first uint64) {
		for i := 0; i+2 <= len(p); i += 2 {
			x := mix(seed + first + uint64(i/2))
			binary.LittleEndian.PutUint16(p[i:], tensor.ToBF16(float32(value(float64(x>>32)/(1<<32), x&1 == 0))))
		}
	}
}

// valueOf returns a tensor's elements from a number of 0 to 1 and a lot. columns
// are those of a matrix whose scales or biases they are: those of one group share
// number and lot.
func valueOf(name string, columns float64) func(u float64, odd bool) float64 {
	levels := 15.0
	if strings.Contains(name, "mlp.gate.") || strings.Contains(name, "shared_expert_gate") {
		levels = 255
	}
	scale := func(u float64, odd bool) float64 {
		s := math.Sqrt(12/columns) / levels * (0.5 + u)
		if odd {
			return -s
		}
		return s
	}
	switch {
	case strings.HasSuffix(name, ".scales"):
		return scale
	case strings.HasSuffix(name, ".biases"):
		return func(u float64, odd bool) float64 { return -scale(u, odd) * levels / 2 }
	case strings.Contains(name, "conv1d"):
		return func(u float64, _ bool) float64 { return u - 0.3 }
	case strings.HasSuffix(name, "A_log"):
		return func(u float64, _ bool) float64 { return math.Log(0.5 + 15*u) }
	case strings.HasSuffix(name, "dt_bias"):
		return func(u float64, _ bool) float64 { return -7 + 5*u }
	}
	return func(u float64, _ bool) float64 { return 0.8 + 0.4*u } // of a norm
}

// mix is the finaliser of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// TestRandomCheckpoint checks that pieces read apart are those of the whole.
func TestRandomCheckpoint(t *testing.T) {
	f, err := randomCheckpoint(t, checkpointtest.Small).Open("model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	whole, p := f.Bytes(), make([]byte, 12)
	for _, x := range f.(*randomFile).tensors {
		for at := x.from; at+12 <= x.to; at += (x.to - x.from) / 8 {
			at -= (at - x.from) % 4
			if _, err := f.ReadAt(p, at); err != nil {
				t.Fatal(err)
			}
			if string(p) != string(whole[at:][:len(p)]) {
				t.Fatalf("bytes from %d on are not those of the whole", at)
			}
		}
	}
}
