//go:build darwin || freebsd || linux

package emulator

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// built returns the path of what scripts/emulator makes, or skips.
func built(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join("..", "..", "build", "emulator", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no %s: run scripts/emulator --tests first", name)
	}
	return path
}

func openLibrary(t testing.TB) Machine {
	l, err := Open(built(t, "libcalla-seeded.so"))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func startRunner(name string) func(testing.TB) Machine {
	return func(t testing.TB) Machine {
		r, err := Start(built(t, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		return r
	}
}

var machines = map[string]func(testing.TB) Machine{
	"library": openLibrary,
	"asan":    startRunner("runner-asan"),
	"tsan":    startRunner("runner-tsan"),
}

// seeded launches one of the kernels of seeded/ over 64 floats.
func seeded(t testing.TB, m Machine, kernel string, groups uint32, order uint32) ([]float32, error) {
	t.Helper()
	b, err := m.Alloc(4 * 64)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Free(b)
	err = m.Run([]Launch{{
		Kernel: kernel, Groups: [3]uint32{groups, 1, 1}, Threads: [3]uint32{64, 1, 1},
		Bound: []Bound{{Slot: 0, Buffer: b}},
	}}, Schedule{Order: order})
	return floats(b.Bytes), err
}

func floats(b []byte) []float32 {
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

// TestSeededFaults proves that each planted fault is caught, and by what.
func TestSeededFaults(t *testing.T) {
	for _, tt := range []struct {
		kernel, machine string
		groups          uint32
		want            string // in the fault; none where empty
	}{
		{"good_race", "library", 1, ""},
		{"good_race", "asan", 1, ""},
		{"good_race", "tsan", 1, ""},
		{"bad_race", "tsan", 1, "data race"},
		{"bad_group_race", "tsan", 2, "data race"},
		{"bad_simd_race", "tsan", 1, "data race"},
		{"bad_barrier", "library", 1, "threadgroup_barrier at seeded.metal:30 was not reached by all threads"},
		{"bad_barrier_sites", "library", 1, "threadgroup_barrier at seeded.metal:35, thread"},
		{"bad_simd_divergence", "library", 1, "simd_sum at seeded.metal:43 was not reached by all lanes"},
		{"bad_simd_exit", "library", 1, "returned early"},
		{"bad_device_bounds", "library", 1, "wrote beyond the end of the buffer at slot 0"},
		{"bad_device_bounds", "asan", 1, "heap-buffer-overflow"},
		{"bad_device_read", "asan", 1, "heap-buffer-overflow"},
		{"bad_tg_bounds", "asan", 1, "out of bounds"},
		{"bad_shift", "asan", 1, "shift exponent"},
	} {
		t.Run(tt.kernel+" "+tt.machine, func(t *testing.T) {
			m := machines[tt.machine](t)
			for order := range uint32(3) {
				_, err := seeded(t, m, tt.kernel, tt.groups, order)
				if tt.want == "" {
					if err != nil {
						t.Errorf("order %d: %v", order, err)
					}
					continue
				}
				var fault *Fault
				if !errors.As(err, &fault) || fault.Kernel != tt.kernel || !strings.Contains(fault.Message, tt.want) {
					t.Errorf("order %d: error %v, want a fault of %s with %q", order, err, tt.kernel, tt.want)
				}
			}
		})
	}
}

// TestPoison reads threadgroup memory that nobody wrote, and an output that a
// kernel left alone.
func TestPoison(t *testing.T) {
	m := openLibrary(t)
	for _, tt := range []struct {
		kernel string
		want   int // values that are not numbers
	}{{"good_race", 0}, {"bad_uninit", 1}, {"bad_unwritten", 1}} {
		t.Run(tt.kernel, func(t *testing.T) {
			values, err := seeded(t, m, tt.kernel, 1, 0)
			if err != nil {
				t.Fatal(err)
			}
			got := 0
			for _, v := range values {
				if v != v {
					got++
				}
			}
			if got != tt.want {
				t.Errorf("%d values are not numbers, want %d", got, tt.want)
			}
		})
	}
}

// TestBarriers runs two launches, the second reading what the first writes.
func TestBarriers(t *testing.T) {
	list := func(m Machine, barrier bool) ([]Launch, *Buffer) {
		a, _ := m.Alloc(4 * 64)
		b, _ := m.Alloc(4 * 64)
		one := [3]uint32{1, 1, 1}
		return []Launch{
			{Kernel: "good_race", Groups: one, Threads: [3]uint32{64, 1, 1}, Bound: []Bound{{Slot: 0, Buffer: a}}},
			{Kernel: "good_copy", Barrier: barrier, Groups: one, Threads: [3]uint32{64, 1, 1},
				Bound: []Bound{{Slot: 0, Buffer: a}, {Slot: 1, Buffer: b}}},
		}, b
	}
	t.Run("with", func(t *testing.T) {
		for name, machine := range machines {
			t.Run(name, func(t *testing.T) {
				for order := range uint32(4) {
					m := machine(t)
					launches, out := list(m, true)
					if err := m.Run(launches, Schedule{Order: order, Workers: 1}); err != nil {
						t.Fatal(err)
					}
					if got := floats(out.Bytes)[7]; got != 8 {
						t.Errorf("order %d: value 7 is %v, want 8", order, got)
					}
				}
			})
		}
	})
	t.Run("without, in another order", func(t *testing.T) {
		m := openLibrary(t)
		launches, out := list(m, false)
		if err := m.Run(launches, Schedule{Order: 1}); err != nil {
			t.Fatal(err)
		}
		if got := floats(out.Bytes)[7]; got == got {
			t.Errorf("value 7 is %v, want not a number", got)
		}
	})
	t.Run("without, under the race detector", func(t *testing.T) {
		m := startRunner("runner-tsan")(t)
		launches, _ := list(m, false)
		if err := m.Run(launches, Schedule{}); err == nil || !strings.Contains(err.Error(), "data race") {
			t.Errorf("error %v, want a data race", err)
		}
	})
}

// TestRefusals are launches that Metal would not take.
func TestRefusals(t *testing.T) {
	m := openLibrary(t)
	b, err := m.Alloc(4 * 64)
	if err != nil {
		t.Fatal(err)
	}
	good := Launch{Kernel: "good_copy", Groups: [3]uint32{1, 1, 1}, Threads: [3]uint32{64, 1, 1},
		Bound: []Bound{{Slot: 0, Buffer: b}, {Slot: 1, Buffer: b}}}
	for _, tt := range []struct {
		name   string
		change func(*Launch)
		want   string
	}{
		{"no such kernel", func(l *Launch) { l.Kernel = "none" }, "no such kernel"},
		{"threads off the simdgroup", func(l *Launch) { l.Threads[0] = 33 }, "33 threads"},
		{"too many threads", func(l *Launch) { l.Threads[0] = 2048 }, "2048 threads"},
		{"empty grid", func(l *Launch) { l.Groups[1] = 0 }, "empty grid"},
		{"too much threadgroup memory", func(l *Launch) { l.Shared = 40 << 10 }, "40960 bytes of threadgroup memory"},
		{"a buffer is missing", func(l *Launch) { l.Bound = l.Bound[:1] }, "buffer 1 is not bound"},
		{"a buffer too many", func(l *Launch) { l.Bound = append(l.Bound, Bound{Slot: 5, Buffer: b}) }, "buffer 5 is bound"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := good
			l.Bound = append([]Bound(nil), good.Bound...)
			tt.change(&l)
			if err := m.Run([]Launch{l}, Schedule{}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// TestFunctionConstants launches kernels with values of their function constants,
// two with different ones in one list, on every machine and in several orders.
func TestFunctionConstants(t *testing.T) {
	for name, machine := range machines {
		t.Run(name, func(t *testing.T) {
			m := machine(t)
			a, _ := m.Alloc(4 * 64)
			b, _ := m.Alloc(4 * 64)
			launch := func(kernel string, on *Buffer, constants ...uint32) Launch {
				l := Launch{Kernel: kernel, Groups: [3]uint32{1, 1, 1}, Threads: [3]uint32{64, 1, 1}, Bound: []Bound{{Slot: 0, Buffer: on}}}
				copy(l.Constants[:], constants)
				return l
			}
			for order := range uint32(4) {
				err := m.Run([]Launch{launch("scale", a, 3), launch("scale_and_move", b, 5, 0, 7)}, Schedule{Order: order, Workers: 2})
				if err != nil {
					t.Fatal(err)
				}
				if x, y := floats(a.Bytes)[11], floats(b.Bytes)[11]; x != 33 || y != 62 {
					t.Errorf("order %d: %v and %v, want 33 and 62", order, x, y)
				}
			}
			for _, tt := range []struct {
				name string
				l    Launch
				want string // empty where there is nothing wrong
			}{
				{"one", launch("scale", a, 3), ""},
				{"none is given", launch("scale", a), "kernel scale: function constant FACTOR, index 0, was not given a value"},
				{"one of a function that it calls is not", launch("scale_and_move", a, 5), "scale_and_move: function constant OFFSET, index 2,"},
				{"one that another kernel has", launch("scale", a, 3, 0, 7), "kernel scale: function constant 2 was given 7, and it has none"},
				{"one to a kernel without", launch("good_race", a, 3), "kernel good_race: function constant 0 was given 3"},
				{"no such kernel", launch("none", a), "no such kernel: none"},
			} {
				t.Run(tt.name, func(t *testing.T) {
					checked, run := m.Check(tt.l.Kernel, tt.l.Constants), m.Run([]Launch{tt.l}, Schedule{})
					for what, err := range map[string]error{"Check": checked, "Run": run} {
						if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
							t.Errorf("%s: error %v, want %q", what, err, tt.want)
						}
					}
				})
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.so")
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), path+": no such file") || !strings.Contains(err.Error(), "scripts/emulator builds") {
		t.Errorf("error %v, want one that says what is missing and how to build it", err)
	}
}

// TestOpenRefusesOthers opens what the loader waits for, dies of or finds elsewhere.
func TestOpenRefusesOthers(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	program, err := os.ReadFile(self(t))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{
		"empty.so": {}, "text.so": []byte("a text that is no library, and longer than a header of one is, so that it is read"),
		"half.so": program[:len(program)/2], "most.so": program[:len(program)-1], "head.so": program[:100],
	}
	for name, content := range files {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(syscall.Mkfifo("fifo.so", 0o600), os.Mkdir("folder.so", 0o700)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"empty.so": "no whole library", "text.so": "no whole library", "half.so": "no whole library", "most.so": "no whole library",
		"head.so": "no whole library", "fifo.so": "no file", "folder.so": "no file", "libc.so.6": "no such file",
	} {
		_, err := Open(name)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), filepath.Join(dir, name)) {
			t.Errorf("%s: error %v, want %q and the folder", name, err, want)
		}
	}
}

// self is the file of this program, which is as whole as a library must be.
func self(t *testing.T) string {
	if runtime.GOOS == "darwin" {
		t.Skip("a Mac's loader looks itself")
	}
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := intact(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestArithmetic counts what a kernel calculates, by what runs of it.
func TestArithmetic(t *testing.T) {
	m, err := OpenTraced(built(t, "libcalla-traced.so"))
	if err != nil {
		t.Fatal(err)
	}
	for kernel, want := range map[string]uint64{"good_race": 0, "arithmetic": 2 * (2*8*8*8 + 2*20)} {
		t.Run(kernel, func(t *testing.T) {
			got := m.Flops(func() {
				if _, err := seeded(t, m, kernel, 1, 0); err != nil {
					t.Fatal(err)
				}
			})
			if got != want {
				t.Errorf("%d operations, want %d", got, want)
			}
		})
	}
}

// TestTraffic counts the bytes of a kernel that reads its input once and of one
// that reads it twice.
func TestTraffic(t *testing.T) {
	m, err := OpenTraced(built(t, "libcalla-traced.so"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		kernel string
		want   Traffic // of the input
	}{
		{"good_copy", Traffic{Loaded: 256, Loads: 256}},
		{"bad_double_read", Traffic{Loaded: 256, Loads: 512}},
	} {
		t.Run(tt.kernel, func(t *testing.T) {
			x, _ := m.Alloc(256)
			y, _ := m.Alloc(256)
			m.Watch(x)
			m.Watch(y)
			defer m.Forget()
			err := m.Run([]Launch{{Kernel: tt.kernel, Groups: [3]uint32{1, 1, 1}, Threads: [3]uint32{64, 1, 1},
				Bound: []Bound{{Slot: 0, Buffer: x}, {Slot: 1, Buffer: y}}}}, Schedule{})
			if err != nil {
				t.Fatal(err)
			}
			if got := m.Traffic(x); got != tt.want {
				t.Errorf("input: %+v, want %+v", got, tt.want)
			}
			if got, want := m.Traffic(y), (Traffic{Stored: 256, Stores: 256}); got != want {
				t.Errorf("output: %+v, want %+v", got, want)
			}
		})
	}
}
